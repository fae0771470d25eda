import { useEffect, useRef } from "preact/hooks";
import { Rich } from "#ui/parts/rich.tsx";
import { useWords } from "#ui/state/context.ts";
import type { Hint } from "./hints.ts";

interface Props {
  readonly hints: readonly Hint[];
  readonly chosen: number;
  readonly onTake: (hint: Hint) => void;
  readonly top: number;
  readonly left: number;
}

/** What can stand at the caret; keys are handled by the text area, which keeps the focus. */
export function HintList({ hints, chosen, onTake, top, left }: Props) {
  const { t } = useWords();
  const list = useRef<HTMLUListElement>(null);
  useEffect(() => list.current?.children[chosen]?.scrollIntoView({ block: "nearest" }), [chosen]);
  const description = hints[chosen]?.description ?? "";
  return (
    <div class="hints" style={{ top: `${top}px`, left: `${left}px` }}>
      <ul ref={list} id="hints" role="listbox" aria-label={t("editor.hints")}>
        {hints.map((hint, at) => (
          <li
            key={hint.text}
            id={`hint-${at}`}
            role="option"
            aria-selected={at === chosen}
            onMouseDown={(event) => {
              event.preventDefault(); // the text area keeps the focus
              onTake(hint);
            }}
          >
            {hint.text}
          </li>
        ))}
      </ul>
      {description !== "" && (
        <p class="hint-about" dir="ltr" lang="en">
          <Rich text={description} />
        </p>
      )}
    </div>
  );
}
