/** Diagnostics as lines of a log: what is said of many items is said once. */
import type { Log } from "#core/log.ts";
import { formatDiagnostic, type Diagnostic } from "./report.ts";

/** Names shown in a line that summarises many items. */
const NAMES_SHOWN = 3;

export interface SummaryLine {
  readonly text: string;
  /** True for the line of an item that another line has counted; shown when all details are asked for. */
  readonly detail: boolean;
}

/** In the order of the file. Where the same is said of several items, one line with their number and the first names. */
export function summarize(fileName: string, diagnostics: readonly Diagnostic[]): readonly SummaryLine[] {
  const kinds = Map.groupBy(
    diagnostics.filter(({ about }) => about !== undefined),
    ({ about }) => about?.what,
  );
  const lines: SummaryLine[] = [];
  for (const diagnostic of diagnostics) {
    const alike = kinds.get(diagnostic.about?.what) ?? [];
    const isCounted = diagnostic.about !== undefined && alike.length > 1;
    if (isCounted && alike[0] === diagnostic)
      lines.push({ text: formatDiagnostic(fileName, counted(diagnostic, alike)), detail: false });
    lines.push({ text: formatDiagnostic(fileName, diagnostic), detail: isCounted });
  }
  return lines;
}

function counted(first: Diagnostic, alike: readonly Diagnostic[]): Diagnostic {
  const names = alike.slice(0, NAMES_SHOWN).map(({ about }) => about?.name ?? "");
  const rest = alike.length - names.length;
  const more = rest > 0 ? ` and ${rest} more` : "";
  return { ...first, message: `${first.about?.what} (${alike.length} nodes: ${names.join(", ")}${more})` };
}

/** Each line as a warning; the details at level debug. */
export function logSummary(log: Log, fileName: string, diagnostics: readonly Diagnostic[]): void {
  for (const { text, detail } of summarize(fileName, diagnostics))
    if (detail) log.debug(() => text);
    else log.warning(text);
}
