/** A table of any length: only the rows in sight are in the page, so 100,000 cost what 40 do. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { HeadText, sortState, type Ordering } from "./ordering.tsx";

/** Below this width a row takes two lines; `layout.css` has the same number. */
const NARROW = "(max-width: 720px)";
/** Rows drawn beyond the edges, so that scrolling does not outrun the drawing. */
const MARGIN_ROWS = 8;

export interface RowsProps<T> {
  readonly label: string;
  /** Names the grid of columns in the style sheet. */
  readonly kind: string;
  readonly ordering: Ordering;
  readonly items: readonly T[];
  readonly keyOf: (item: T) => string | number;
  /** The cells, as many as columns, each with `role="cell"`. */
  readonly cells: (item: T) => ComponentChildren;
  readonly faded?: (item: T) => boolean;
  /** A click anywhere in a row opens it; for keys its cells have a button that does the same. */
  readonly onOpen?: (item: T) => void;
}

export function Rows<T>({ label, kind, ordering, items, keyOf, cells, faded, onOpen }: RowsProps<T>) {
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, height: 600 });
  const rowHeight = useNarrow() ? 68 : 40;
  useEffect(() => {
    const element = box.current as HTMLDivElement;
    const look = (): void => setView({ top: element.scrollTop, height: element.clientHeight });
    const observer = new ResizeObserver(look);
    observer.observe(element);
    element.addEventListener("scroll", look, { passive: true });
    return () => {
      observer.disconnect();
      element.removeEventListener("scroll", look);
    };
  }, []);
  const first = Math.max(0, Math.min(items.length, Math.floor(view.top / rowHeight) - MARGIN_ROWS));
  const last = Math.min(items.length, Math.ceil((view.top + view.height) / rowHeight) + MARGIN_ROWS);
  return (
    <div
      ref={box}
      class={`rows ${kind}`}
      role="table"
      aria-label={label}
      aria-rowcount={items.length + 1}
      tabIndex={0}
    >
      <div class="row row-head" role="row" aria-rowindex={1}>
        {ordering.columns.map(({ name }, at) => (
          <span key={name} role="columnheader" aria-sort={sortState({ ordering, at })}>
            <HeadText ordering={ordering} at={at} />
          </span>
        ))}
      </div>
      <div class="rows-all" role="rowgroup" style={{ height: `${items.length * rowHeight}px` }}>
        {items.slice(first, last).map((item, at) => (
          <div
            key={keyOf(item)}
            class={`row ${faded?.(item) === true ? "faded" : ""} ${onOpen === undefined ? "" : "opens"}`}
            role="row"
            aria-rowindex={first + at + 2}
            onClick={(event) => {
              if (isBeside(event)) onOpen?.(item);
            }}
            style={{ top: `${(first + at) * rowHeight}px`, height: `${rowHeight}px` }}
          >
            {cells(item)}
          </div>
        ))}
      </div>
    </div>
  );
}

/** Not on a control of its own, and not the end of marking text. */
function isBeside({ target }: Event): boolean {
  const isControl = target instanceof Element && target.closest("button, a, input, select, label") !== null;
  return !isControl && getSelection()?.isCollapsed !== false;
}

function useNarrow(): boolean {
  const [narrow, set] = useState(() => matchMedia(NARROW).matches);
  useEffect(() => {
    const query = matchMedia(NARROW);
    const onChange = (): void => set(query.matches);
    query.addEventListener("change", onChange);
    return () => query.removeEventListener("change", onChange);
  }, []);
  return narrow;
}
