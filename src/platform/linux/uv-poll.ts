/** Readiness of descriptors that Node does not know, in Node's own event loop: libuv's uv_poll by FFI. */
import type * as Ffi from "node:ffi";
import { openFfi } from "#platform/ffi.ts";

const UV_POLL = 8;
/** What a descriptor is watched for, and what it is ready for. */
export const UV_READABLE = 1;
export const UV_WRITABLE = 2;

const SIGNATURES = {
  uv_handle_size: { arguments: ["i32"], return: "u64" },
  uv_poll_init: { arguments: ["pointer", "pointer", "i32"], return: "i32" },
  uv_poll_start: { arguments: ["pointer", "i32", "pointer"], return: "i32" },
  uv_poll_stop: { arguments: ["pointer"], return: "i32" },
  uv_ref: { arguments: ["pointer"], return: "void" },
  uv_unref: { arguments: ["pointer"], return: "void" },
  uv_close: { arguments: ["pointer", "pointer"], return: "void" },
} as const;

export interface Watch {
  /** Does it keep the process alive? Initially yes. */
  hold(holds: boolean): void;
  /** Nothing is called any more; the descriptor may be closed right afterwards. */
  close(): void;
}

export interface ReadinessWatch extends Watch {
  /** `UV_READABLE` and `UV_WRITABLE` in one number; 0: nothing for now. */
  want(events: number): void;
}

interface Watched {
  /** libuv's structure; it must stay where it is until libuv says that it is closed. */
  readonly memory: Uint8Array;
  readonly pointer: bigint;
  readonly onReady: (events: number) => void;
  wanted: number;
  open: boolean;
}

const NEVER_MS = 0x7fff_ffff;

/** Descriptors to watch on the thread that made it. Null where this runtime has no FFI. */
export function openPoller(): Poller | null {
  const ffi = openFfi();
  return ffi === null ? null : new Poller(ffi);
}

export class Poller {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #watched = new Map<bigint, Watched>();
  /** While something is watched: the collector sees no reference from libuv; a timer that never fires is one that it sees. */
  #root: NodeJS.Timeout | undefined;
  readonly #onEvent: bigint;
  readonly #onClosed: bigint;
  readonly #handleBytes: number;
  /** Node runs promise jobs after its own callbacks only. */
  readonly #runPendingJobs = (): void => void (this.#jobsDue = false);
  #jobsDue = false;

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    const { lib, functions } = this.#library;
    this.#handleBytes = Number(functions.uv_handle_size(UV_POLL));
    this.#onEvent = lib.registerCallback(
      { arguments: ["pointer", "i32", "i32"], return: "void" },
      (pointer, status, events) => this.#event(pointer as bigint, status, events),
    );
    this.#onClosed = lib.registerCallback({ arguments: ["pointer"], return: "void" }, (pointer) =>
      this.#closed(pointer as bigint),
    );
  }

  /** Calls `onReadable` while there is something to read. The descriptor stays the caller's. */
  watch(fd: number, onReadable: () => void): Watch {
    const watch = this.watchReadiness(fd, onReadable);
    watch.want(UV_READABLE);
    return watch;
  }

  /** Calls `onReady` while it is ready for something that is wanted, or has failed, which shows as ready for all. */
  watchReadiness(fd: number, onReady: (events: number) => void): ReadinessWatch {
    const { uv_poll_init: init, uv_close: close } = this.#library.functions;
    const memory = new Uint8Array(new ArrayBuffer(this.#handleBytes)); // never on the moving heap
    const pointer = this.#ffi.getRawPointer(memory);
    if (init(this.#ffi.getCurrentEventLoop(), pointer, fd) !== 0)
      throw new Error(`cannot watch descriptor ${fd}`);
    const watched: Watched = { memory, pointer, onReady, wanted: 0, open: true };
    this.#root ??= setInterval(() => this.#watched, NEVER_MS).unref();
    this.#watched.set(pointer, watched);
    const { uv_ref: ref, uv_unref: unref } = this.#library.functions;
    return {
      hold: (holds) => {
        if (watched.open) (holds ? ref : unref)(pointer);
      },
      want: (events) => {
        if (!watched.open || watched.wanted === events) return;
        watched.wanted = events;
        this.#start(watched);
      },
      close: () => {
        if (!watched.open) return;
        watched.open = false;
        close(pointer, this.#onClosed);
      },
    };
  }

  #start({ pointer, wanted }: Watched): void {
    const { uv_poll_start, uv_poll_stop } = this.#library.functions;
    if (wanted === 0) uv_poll_stop(pointer);
    else uv_poll_start(pointer, wanted, this.#onEvent);
  }

  /** Called by libuv: an exception here would abort the process. */
  #event(pointer: bigint, status: number, events: number): void {
    const watched = this.#watched.get(pointer);
    if (watched === undefined || !watched.open) return;
    try {
      // Reading takes a pending error off the socket, too.
      watched.onReady(status < 0 ? UV_READABLE | UV_WRITABLE : events);
      if (status < 0 && watched.open) this.#start(watched); // libuv stops at an error
    } catch (error) {
      setImmediate(() => {
        throw error;
      });
    }
    if (this.#jobsDue) return;
    this.#jobsDue = true;
    setImmediate(this.#runPendingJobs);
  }

  #closed(pointer: bigint): void {
    this.#watched.delete(pointer);
    if (this.#watched.size > 0) return;
    clearInterval(this.#root);
    this.#root = undefined;
  }
}
