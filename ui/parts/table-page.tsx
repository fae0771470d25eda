import type { ComponentChildren } from "preact";
import { OrderSelect } from "./ordering.tsx";
import { Rows, type RowsProps } from "./rows.tsx";
import { Input } from "./inputs.tsx";
import { Fault, Page } from "./small.tsx";
import type { Words } from "#ui/words/words.ts";

interface Props<T> extends RowsProps<T> {
  readonly title: string;
  readonly filter: string;
  readonly onFilter: (filter: string) => void;
  readonly filterLabel: string;
  readonly filterHint: string;
  /** Stand behind the filter. */
  readonly tools: ComponentChildren;
  /** How many there are; or that this is not known yet. */
  readonly status: string;
  readonly error?: string | null;
  /** What must not be missed. */
  readonly warning?: ComponentChildren;
  /** Stands instead of the table; null while there are rows, or while that is not known. */
  readonly nothing: ComponentChildren;
  /** Besides the filter: what makes another list of it, which begins at its top. */
  readonly variant?: string;
  /** The tools have a choice of orders already. */
  readonly hasOwnOrder?: boolean;
  readonly children?: ComponentChildren;
}

/** A page that is one long table with a filter. */
export function TablePage<T>({
  title,
  filter,
  onFilter,
  filterLabel,
  filterHint,
  tools,
  status,
  error = null,
  warning = null,
  nothing,
  variant = "",
  hasOwnOrder = false,
  children,
  ...rows
}: Props<T>) {
  return (
    <Page
      title={title}
      fill
      tools={
        <>
          <Input
            label={filterLabel}
            type="search"
            value={filter}
            onInput={onFilter}
            placeholder={filterHint}
          />
          {!hasOwnOrder && (
            <div class="narrow-only">
              <OrderSelect ordering={rows.ordering} />
            </div>
          )}
          {tools}
        </>
      }
    >
      <p class="status" role="status">
        {status}
      </p>
      <Fault text={error} />
      {warning}
      {nothing ?? <Rows key={`${variant} ${filter}`} {...rows} />}
      {children}
    </Page>
  );
}

/** Before there is a first answer. */
export const waitingText = ({ t }: Words, error: string | null): string =>
  error === null ? t("common.loading") : "";
