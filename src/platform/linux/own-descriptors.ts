/**
 * A table of descriptors of its own for one thread (close_range(2), unshare(2)). Libraries that wait with `select` can name
 * no descriptor above 1,023: one that runs in such a thread always gets a low one, however many the program has open.
 */
import type * as Ffi from "node:ffi";
import { readdirSync, readFileSync, readlinkSync } from "node:fs";

const SIGNATURES = {
  uv_backend_fd: { arguments: ["pointer"], return: "i32" },
  pthread_sigmask: { arguments: ["i32", "pointer", "pointer"], return: "i32" },
  syscall: { arguments: ["i64", "u32", "u32", "u32"], return: "i32" },
  unshare: { arguments: ["i32"], return: "i32" },
  close: { arguments: ["i32"], return: "i32" },
} as const;

/** One number on every architecture; the C library may be older than the kernel. */
const SYS_CLOSE_RANGE = 436n;
const CLOSE_RANGE_UNSHARE = 2;
const CLONE_FILES = 0x400;
const MOST = 0xffff_ffff;
const SIG_BLOCK = 0;
const SIGSET_BYTES = 128;
const LAST_STANDARD = 2;

/**
 * From now on what this thread opens and closes is its own affair. It keeps the standard streams and what event loops
 * are woken by; everything else of the program is closed here, so that nothing stays open behind the program's back. Signals
 * go to the other threads. For good: the thread should live as long as the program, or its loop's descriptors stay open
 * there. False: the kernel does not let it, and nothing was changed.
 */
export function ownDescriptors(ffi: typeof Ffi): boolean {
  const { functions } = ffi.dlopen(null, SIGNATURES);
  const kept = [...loopDescriptors(functions.uv_backend_fd(ffi.getCurrentEventLoop()))].toSorted(
    (a, b) => a - b,
  );
  const all = new Uint8Array(SIGSET_BYTES).fill(0xff);
  // libuv's handler writes to a pipe that is not among them: a signal that came to this thread would be lost.
  functions.pthread_sigmask(SIG_BLOCK, all, new Uint8Array(SIGSET_BYTES));
  const last = kept.at(-1) ?? LAST_STANDARD;
  const closeRange = (from: number, to: number, flags: number): boolean =>
    from > to || functions.syscall(SYS_CLOSE_RANGE, from, to, flags) === 0;
  if (!closeRange(last + 1, MOST, CLOSE_RANGE_UNSHARE)) {
    if (functions.unshare(CLONE_FILES) !== 0) return false;
    for (const fd of descriptors()) if (fd > LAST_STANDARD && !kept.includes(fd)) functions.close(fd);
    return true;
  }
  let from = LAST_STANDARD + 1;
  for (const fd of kept) {
    closeRange(from, fd - 1, 0);
    from = Math.max(from, fd + 1);
  }
  return true;
}

/** The highest number that `select` can wait for. */
export const MOST_SELECTABLE = 1_023;

/** Would the next descriptor of this thread be one that `select` can wait for? */
export function isNextSelectable(): boolean {
  const taken = new Set(descriptors());
  for (let fd = 0; fd <= MOST_SELECTABLE; fd++) if (!taken.has(fd)) return true;
  return false;
}

function descriptors(): readonly number[] {
  return readdirSync("/proc/thread-self/fd").map(Number);
}

/**
 * libuv waits with one descriptor for others: an eventfd, and a pipe, whose writing end it holds as well. Other threads are
 * woken by their eventfds, and some kernels have a ring beside each loop; whose is whose nothing shows, so all of these are
 * kept: they hold nothing else open.
 */
function loopDescriptors(backend: number): ReadonlySet<number> {
  const kept = new Set([backend]);
  const shown = readFileSync(`/proc/thread-self/fdinfo/${backend}`, "latin1");
  for (const [, fd] of shown.matchAll(/^tfd:\s+(\d+)/gm)) kept.add(Number(fd));
  const named = descriptors().map((fd) => ({ fd, name: nameOf(fd) }));
  const pipes = new Set(
    named.filter(({ fd, name }) => kept.has(fd) && name.startsWith("pipe:")).map(({ name }) => name),
  );
  for (const { fd, name } of named) if (WAKING.has(name) || pipes.has(name)) kept.add(fd);
  return kept;
}

const WAKING: ReadonlySet<string> = new Set(["anon_inode:[eventfd]", "anon_inode:[io_uring]"]);

/** Empty where it has been closed meanwhile. */
function nameOf(fd: number): string {
  try {
    return readlinkSync(`/proc/thread-self/fd/${fd}`);
  } catch {
    return "";
  }
}
