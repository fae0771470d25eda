/** A text area with line numbers, marks on lines, and hints while typing. The browser's own: undo, input methods and screen readers work. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";
import type { Remark } from "#ui/api/config-types.ts";
import { aboutKey, hintsAt, type Hint, type Schema } from "./hints.ts";
import { HintList } from "./hint-list.tsx";
import { placeAt, type Place } from "./place.ts";

/** `editor.css` has the same. */
const LINE_PX = 20;
const CHARACTER_PX = 7.8;
const PADDING_PX = 8;

export interface Jump {
  readonly line: number;
  readonly column: number;
}

interface Props {
  readonly label: string;
  readonly text: string;
  readonly onText: (text: string) => void;
  readonly remarks: readonly Remark[];
  /** Null: there are no hints. */
  readonly schema: Schema | null;
  /** Where the caret is to go; each object once. */
  readonly jump: Jump | null;
  /** About the key at the caret. */
  readonly onAbout: (key: string, about: Schema | null) => void;
}

interface Offer {
  readonly place: Place;
  readonly hints: readonly Hint[];
  readonly chosen: number;
}

export function CodeArea({ label, text, onText, remarks, schema, jump, onAbout }: Props) {
  const area = useRef<HTMLTextAreaElement>(null);
  const [scroll, setScroll] = useState({ top: 0, left: 0, height: 480 });
  const [offer, setOffer] = useState<Offer | null>(null);
  const element = (): HTMLTextAreaElement => area.current as HTMLTextAreaElement;
  const look = (): void => {
    const { scrollTop: top, scrollLeft: left, clientHeight: height } = element();
    setScroll({ top, left, height });
  };
  useLayoutEffect(() => {
    const observer = new ResizeObserver(look);
    observer.observe(element());
    return () => observer.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (jump !== null) goTo(element(), jump);
  }, [jump]);

  const offerAt = (isAsked: boolean): void => {
    const place = schema === null ? null : placeAt(element().value, element().selectionStart);
    const hints = schema === null || place === null ? [] : hintsAt(schema, place);
    const isWorth = hints.length > 0 && place !== null && (isAsked || place.typed !== "");
    setOffer(isWorth ? { place, hints, chosen: 0 } : null);
  };
  const tellAbout = (): void => {
    const { value, selectionStart } = element();
    const end = value.indexOf("\n", selectionStart);
    const place = schema === null ? null : placeOfKey(value.slice(0, end < 0 ? undefined : end));
    onAbout(place?.key ?? "", schema === null || place === null ? null : aboutKey(schema, place));
  };
  const take = (hint: Hint | undefined): void => {
    if (hint !== undefined && offer !== null) insert(element(), offer.place, hint.text);
    setOffer(null);
  };
  const onKey = (event: KeyboardEvent): void => {
    if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      return offerAt(true);
    }
    if (offer === null) return;
    const { hints, chosen } = offer;
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setOffer({ ...offer, chosen: (chosen + step + hints.length) % hints.length });
    else if (event.key === "Enter" || event.key === "Tab") take(hints[chosen]);
    else if (event.key === "Escape") setOffer(null);
    else return;
    event.preventDefault();
  };
  return (
    <div class="code-area">
      <Gutter lines={countLines(text)} scroll={scroll} remarks={remarks} />
      <div class="code-text">
        <Marks remarks={remarks} scroll={scroll} />
        <textarea
          ref={area}
          aria-label={label}
          aria-autocomplete="list"
          aria-controls={offer === null ? undefined : "hints"}
          aria-activedescendant={offer === null ? undefined : `hint-${offer.chosen}`}
          value={text}
          wrap="off"
          dir="ltr"
          spellcheck={false}
          autocapitalize="off"
          autocomplete="off"
          onScroll={look}
          onKeyDown={onKey}
          onKeyUp={tellAbout}
          onClick={() => {
            setOffer(null);
            tellAbout();
          }}
          onBlur={() => setOffer(null)}
          onInput={(event) => {
            onText(event.currentTarget.value);
            offerAt(false);
          }}
        />
        {offer !== null && (
          <HintList
            hints={offer.hints}
            chosen={offer.chosen}
            onTake={take}
            {...besideCaret(element(), offer.place)}
          />
        )}
      </div>
    </div>
  );
}

interface Scroll {
  readonly top: number;
  readonly left: number;
  readonly height: number;
}

const countLines = (text: string): number => {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines++;
  return lines;
};

const topOf = (line: number, { top }: Scroll): number => PADDING_PX + (line - 1) * LINE_PX - top;

const isSeen = (line: number, { top, height }: Scroll): boolean =>
  line * LINE_PX >= top - LINE_PX && (line - 1) * LINE_PX <= top + height;

/** Only the numbers in sight. */
function Gutter({ lines, scroll, remarks }: { lines: number; scroll: Scroll; remarks: readonly Remark[] }) {
  const first = Math.max(1, Math.floor(scroll.top / LINE_PX));
  const last = Math.min(lines, first + Math.ceil(scroll.height / LINE_PX) + 2);
  const worst = new Map<number, string>();
  for (const { line, severity } of remarks.toReversed()) worst.set(line, severity); // errors come first
  return (
    <div class="gutter" aria-hidden="true">
      {Array.from({ length: Math.max(0, last - first + 1) }, (_, at) => first + at).map((line) => (
        <span
          key={line}
          class={`gutter-line ${worst.get(line) ?? ""}`}
          style={{ top: `${topOf(line, scroll)}px` }}
        >
          {line}
        </span>
      ))}
    </div>
  );
}

function Marks({ remarks, scroll }: { remarks: readonly Remark[]; scroll: Scroll }) {
  return (
    <>
      {remarks
        .filter(({ line }) => isSeen(line, scroll))
        .map(({ line, severity }, at) => (
          <span
            key={at}
            class={`mark ${severity}`}
            style={{ top: `${topOf(line, scroll)}px` }}
            aria-hidden="true"
          />
        ))}
    </>
  );
}

/** The key of the line that the text ends with, wherever in it the caret is. */
function placeOfKey(text: string): Place | null {
  const start = text.lastIndexOf("\n") + 1;
  const [key] = /^ *(?:- +)*["']?[^\s"'#{}[\],:][^"'#{}[\]:]*["']? *:/.exec(text.slice(start)) ?? [];
  if (key === undefined) return null;
  const before = `${text.slice(0, start)}${key} `;
  return placeAt(`${before}x`, before.length + 1);
}

/** As if it had been typed, so that it can be undone. */
function insert(element: HTMLTextAreaElement, { from }: Place, text: string): void {
  const { value, selectionEnd } = element;
  const rest = /^[^\S\n]*:/.test(value.slice(selectionEnd)) ? text.replace(/: $/, "") : text;
  element.focus();
  element.setSelectionRange(from, selectionEnd);
  document.execCommand("insertText", false, rest);
}

function goTo(element: HTMLTextAreaElement, { line, column }: Jump): void {
  let start = 0;
  for (let at = 1; at < line; at++) {
    const end = element.value.indexOf("\n", start);
    if (end < 0) break;
    start = end + 1;
  }
  element.focus();
  element.setSelectionRange(start + column - 1, start + column - 1);
  element.scrollTop = Math.max(0, (line - 1) * LINE_PX - element.clientHeight / 2);
}

function besideCaret(
  element: HTMLTextAreaElement,
  { from }: Place,
): { readonly top: number; readonly left: number } {
  const before = element.value.slice(0, from);
  const line = countLines(before);
  const column = before.length - before.lastIndexOf("\n") - 1;
  const left = PADDING_PX + column * CHARACTER_PX - element.scrollLeft;
  return {
    top: PADDING_PX + line * LINE_PX - element.scrollTop,
    left: Math.max(0, Math.min(left, element.clientWidth - 240)),
  };
}
