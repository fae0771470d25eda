/** What a configuration makes weir write must not be what something else is kept in, its own secrets least of all. */
import { realpathSync, statSync } from "node:fs";
import { basename, dirname, isAbsolute, join, relative, resolve } from "node:path";
import { JOURNAL_SUFFIX, type FileGuard, type SafeFiles, type WrittenKind } from "#core/files.ts";
import type { Config } from "./config.ts";
import { pathText, type Path } from "./report.ts";
import type { FileUse } from "./shape.ts";

interface Written extends FileUse {
  readonly title: string;
  readonly kind: WrittenKind;
}

interface Taken {
  readonly title: string;
  readonly file: string;
  /** It holds a list of nodes or rules. */
  readonly isList: boolean;
}

type Named = Pick<Config, "svc" | "proxyProviders" | "ruleProviders"> & {
  readonly controller: Pick<Config["controller"], "externalUi" | "externalUiName">;
  readonly trafficControl: { readonly store: string } | null;
};

/** A sentence a key that would have something else overwritten or given away. `uses`: what keys name, written or read. */
export function fileFaults(
  config: Named,
  uses: readonly FileUse[],
  files: Pick<SafeFiles, "resolve">,
  guard: FileGuard,
): readonly { readonly path: Path; readonly message: string }[] {
  const written = writtenBy(config, files);
  const own = new Set(written.map(({ path }) => pathText(path)));
  const taken = new Map<string, Taken>();
  for (const { title, file } of guard.known) taken.set(identityOf(file), { title, file, isList: false });
  for (const { path, file } of uses)
    if (!own.has(pathText(path)))
      taken.set(identityOf(file), {
        title: pathText(path),
        file,
        isList: String(path[0]).endsWith("-providers"),
      });
  return written.flatMap((one) => {
    const { path, title } = one;
    const fault =
      one.kind === "folder" ? folderFault(one, [...taken.values()], guard) : fileFault(one, taken, guard);
    return fault === null ? [] : [{ path, message: `${title}: ${fault}` }];
  });
}

/** Takes the paths of this use; those before it have theirs. Lists may share a file: nothing is lost by it. */
function fileFault(
  { kind, title, file }: Written,
  taken: Map<string, Taken>,
  guard: FileGuard,
): string | null {
  const isList = kind === "download";
  for (const path of isList ? [file] : guard.pathsOfStore(file)) {
    const identity = identityOf(path);
    const other = taken.get(identity);
    if (other === undefined) taken.set(identity, { title, file: path, isList });
    else if (!isList || !other.isList)
      return `${path} is that of ${other.title}; another path would be right`;
  }
  return guard.fault(kind, file);
}

/** All files of the folder are served without a secret. */
function folderFault({ file, kind }: Written, taken: readonly Taken[], guard: FileGuard): string | null {
  const folder = realPath(file);
  const inside = taken.find((use) => holds(folder, realPath(use.file)));
  if (inside !== undefined)
    return `${file} would be served to everybody with ${inside.title} in it; it needs a folder of its own`;
  return guard.fault(kind, file);
}

function writtenBy(config: Named, files: Pick<SafeFiles, "resolve">): readonly Written[] {
  const found: Written[] = [];
  const add = (kind: WrittenKind, title: string, path: Path, text: string): void => {
    if (text === "") return;
    try {
      found.push({ kind, title, path, file: files.resolve(text) });
    } catch {
      // a path outside is an error of its own
    }
  };
  if (config.svc !== null) {
    add("users", "svc.store", ["svc", "store"], config.svc.store);
    add("journal", "svc.store, its journal", ["svc", "store"], `${config.svc.store}${JOURNAL_SUFFIX}`);
  }
  if (config.trafficControl !== null)
    add("policies", "traffic-control.store", ["traffic-control", "store"], config.trafficControl.store);
  for (const section of ["proxy", "rule"] as const)
    for (const [name, { type, path }] of config[`${section}Providers`])
      if (type === "http")
        add("download", `${section} provider ${name}`, [`${section}-providers`, name, "path"], path);
  const { externalUi, externalUiName } = config.controller;
  if (externalUi !== "") add("folder", "external-ui", ["external-ui"], join(externalUi, externalUiName));
  return found;
}

/** The same for every name of a file: links and hard links lead to one. */
function identityOf(path: string): string {
  try {
    const { dev, ino } = statSync(path, { bigint: true });
    return `${dev}:${ino}`;
  } catch {
    return realPath(path);
  }
}

/** What does not exist is appended to the real path of what does. */
function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const above = dirname(path);
    return above === path ? path : join(realPath(above), basename(path));
  }
}

function holds(folder: string, file: string): boolean {
  const way = relative(folder, resolve(file));
  return !isAbsolute(way) && way !== ".." && !/^\.\.[/\\]/.test(way);
}
