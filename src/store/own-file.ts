/**
 * Which files are weir's own stores: decided by their first bytes, without opening them as databases, which can change
 * them.
 */
import { closeSync, constants, fstatSync, lstatSync, openSync, readSync } from "node:fs";
import { MARK_BYTES, MARK_MAGIC, MARK_SUFFIX } from "./high-mark.ts";
import { createTable, ForeignFileError, SQLITE_MAGIC } from "./sqlite-file.ts";

/** `unclear`: bytes of no known format, a damaged file of ours or a foreign one. */
export type Mark =
  | { readonly kind: "missing" | "own" }
  | { readonly kind: "foreign" | "unclear"; readonly why: string };

/** The file of a store with these parts, or its backup. Never throws but for a file that cannot be read. */
export function markOf(path: string, parts: readonly string[]): Mark {
  const head = headOf(path);
  if (head === null) return { kind: "missing" };
  if (typeof head === "string") return { kind: "foreign", why: head };
  return markByTables(head, parts) ?? markOfOther(head);
}

/**
 * Throws `ForeignFileError` where one of the two files is not ours, or where a name that a store needs beside them is
 * taken by something else. What is unclear is taken for damage only where the other file is our own.
 */
export function refuseForeignFiles(path: string, parts: readonly string[]): void {
  const backup = `${path}.bak`;
  const marks = [path, backup].map((file) => [file, markOf(file, parts)] as const);
  const hasOwn = marks.some(([, { kind }]) => kind === "own");
  for (const [file, mark] of marks)
    if (mark.kind === "foreign" || (mark.kind === "unclear" && !hasOwn))
      throw new ForeignFileError(`${file}: ${mark.why}; left as it is; a store needs a path of its own`);
  for (const file of [path, backup])
    for (const [suffix, isOurs] of BESIDE) refuseBeside(file + suffix, isOurs, hasOwn);
}

/** Every path that a store at this one may write. */
export function pathsOfStore(path: string): readonly string[] {
  return [path, `${path}.bak`].flatMap((file) => [file, ...BESIDE.map(([suffix]) => file + suffix)]);
}

/** The first page. */
const HEAD_BYTES = 4096;

/** The first page of a regular file, null where there is none, or what is wrong with what there is instead. */
export function headOf(path: string): Buffer | string | null {
  const stats = lstatSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return null;
  if (!stats.isFile()) return "must be a regular file, not a link, a folder or a device";
  const descriptor = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0));
  try {
    if (!fstatSync(descriptor).isFile()) return "must be a regular file";
    const bytes = Buffer.alloc(HEAD_BYTES);
    return bytes.subarray(0, readSync(descriptor, bytes));
  } finally {
    closeSync(descriptor);
  }
}

function markOfOther(head: Buffer): Mark {
  if (SQLITE_MAGIC.subarray(0, head.length).equals(head)) return { kind: "unclear", why: "cut off" };
  if (isText(head)) {
    const text = head.toString().trimStart();
    if (text.startsWith("{"))
      return { kind: "foreign", why: "this is a JSON state file; weir users import takes its users over" };
    return { kind: "foreign", why: "it holds text" };
  }
  return { kind: "unclear", why: begins(head, SQLITE_MAGIC) ? "a database of another kind" : "no database" };
}

/** Blanks and printable characters only; a multi-byte character that the head cuts in two counts as one. */
function isText(head: Buffer): boolean {
  return !/[^\t\n\r\f\u0020-\u007e\u00a0-\u{10ffff}]|\ufffd(?!$)/u.test(head.toString("utf8"));
}

/** SQLite keeps the text of `CREATE TABLE` as it is, for so few tables on the first page. */
function markByTables(head: Buffer, parts: readonly string[]): Mark | null {
  const text = head.toString("latin1");
  const made = [...text.matchAll(/CREATE TABLE "?(\w+)"?/g)].map(([, name = ""]) => name);
  const strange = made.find((name) => name !== "meta" && !parts.includes(name));
  if (strange !== undefined)
    return { kind: "unclear", why: `a database of another kind, with a table ${strange}` };
  return text.includes(createTable("meta")) ? { kind: "own" } : null;
}

/** https://sqlite.org/fileformat.html §3 and §4.1, https://sqlite.org/walformat.html §2.1 */
const JOURNAL = Buffer.from("d9d505f920a163d7", "hex");
const LOGS = [Buffer.from("377f0682", "hex"), Buffer.from("377f0683", "hex")];
const INDEXES = [Buffer.from("18e22d00", "hex"), Buffer.from("002de218", "hex")];

const begins = (head: Buffer, magic: Buffer) =>
  head.length === 0 || head.subarray(0, magic.length).equals(magic);

/** SHA-256 in hexadecimal digits. */
const SUM_BYTES = 64;

/** Files beside a store's file, and how ours are recognised: the last three are SQLite's. */
const BESIDE: readonly (readonly [suffix: string, isOurs: (head: Buffer) => boolean])[] = [
  [".lock", (head) => head.length === 0],
  [".tmp", (head) => begins(head, SQLITE_MAGIC)],
  [MARK_SUFFIX, (head) => begins(head, MARK_MAGIC)],
  [".sum", (head) => head.length <= SUM_BYTES && /^[0-9a-f]*$/.test(head.toString("latin1"))],
  ["-wal", (head) => LOGS.some((magic) => begins(head, magic)) || head.every((byte) => byte === 0)],
  ["-journal", (head) => begins(head, JOURNAL)],
  ["-shm", (head) => INDEXES.some((magic) => begins(head, magic))],
];

/** Beside a file of ours noise is damage, which the opening deals with. */
function refuseBeside(path: string, isOurs: (head: Buffer) => boolean, besideOwn: boolean): void {
  const head = headOf(path);
  if (head === null) return;
  if (typeof head !== "string" && (isOurs(head) || (besideOwn && mayBeDamaged(path, head)))) return;
  const why = typeof head === "string" ? head : "a store needs this name";
  throw new ForeignFileError(`${path}: ${why}, and this is no file of a store; it is left as it is`);
}

function mayBeDamaged(path: string, head: Buffer): boolean {
  if (path.endsWith(".sum")) return head.length === SUM_BYTES;
  if (!isText(head)) return true;
  // A mark is text itself: one that was changed has its length, one that was cut its beginning.
  return path.endsWith(MARK_SUFFIX) && (head.length === MARK_BYTES || begins(MARK_MAGIC, head));
}
