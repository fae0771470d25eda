/** Readiness of descriptors that Node does not know, in Node's own event loop: libuv's uv_poll by FFI. */
import type * as Ffi from "node:ffi";

const UV_POLL = 8;
const UV_READABLE = 1;

const SIGNATURES = {
  uv_handle_size: { arguments: ["i32"], return: "u64" },
  uv_poll_init: { arguments: ["pointer", "pointer", "i32"], return: "i32" },
  uv_poll_start: { arguments: ["pointer", "i32", "pointer"], return: "i32" },
  uv_close: { arguments: ["pointer", "pointer"], return: "void" },
} as const;

export interface Watch {
  /** Nothing is called any more; the descriptor may be closed right afterwards. */
  close(): void;
}

interface Watched {
  /** libuv's structure; it must stay where it is until libuv says that it is closed. */
  readonly memory: Uint8Array;
  readonly pointer: bigint;
  /** The collector sees no reference from libuv; a timer that never fires is one that it sees. */
  readonly root: NodeJS.Timeout;
  readonly onReadable: () => void;
  open: boolean;
}

const NEVER_MS = 0x7fff_ffff;

/** Descriptors to watch on the thread that made it. Null where this runtime has no FFI. */
export function openPoller(): Poller | null {
  const ffi = process.getBuiltinModule("node:ffi");
  return ffi === undefined ? null : new Poller(ffi);
}

export class Poller {
  readonly #ffi: typeof Ffi;
  readonly #library;
  readonly #watched = new Map<bigint, Watched>();
  readonly #onEvent: bigint;
  readonly #onClosed: bigint;
  readonly #handleBytes: number;

  constructor(ffi: typeof Ffi) {
    this.#ffi = ffi;
    this.#library = ffi.dlopen(null, SIGNATURES);
    const { lib, functions } = this.#library;
    this.#handleBytes = Number(functions.uv_handle_size(UV_POLL));
    this.#onEvent = lib.registerCallback(
      { arguments: ["pointer", "i32", "i32"], return: "void" },
      (pointer, status) => this.#event(pointer as bigint, status),
    );
    this.#onClosed = lib.registerCallback({ arguments: ["pointer"], return: "void" }, (pointer) =>
      this.#closed(pointer as bigint),
    );
  }

  /** Calls `onReadable` while there is something to read. The descriptor stays the caller's. */
  watch(fd: number, onReadable: () => void): Watch {
    const { uv_poll_init: init, uv_close: close } = this.#library.functions;
    const memory = new Uint8Array(new ArrayBuffer(this.#handleBytes)); // never on the moving heap
    const pointer = this.#ffi.getRawPointer(memory);
    if (init(this.#ffi.getCurrentEventLoop(), pointer, fd) !== 0)
      throw new Error(`cannot watch descriptor ${fd}`);
    const root = setInterval(() => this.#watched, NEVER_MS).unref();
    const watched: Watched = { memory, pointer, root, onReadable, open: true };
    this.#watched.set(pointer, watched);
    this.#start(watched);
    return {
      close: () => {
        if (!watched.open) return;
        watched.open = false;
        close(pointer, this.#onClosed);
      },
    };
  }

  #start({ pointer }: Watched): void {
    this.#library.functions.uv_poll_start(pointer, UV_READABLE, this.#onEvent);
  }

  /** Called by libuv: an exception here would abort the process. */
  #event(pointer: bigint, status: number): void {
    const watched = this.#watched.get(pointer);
    if (watched === undefined || !watched.open) return;
    try {
      watched.onReadable(); // reading takes a pending error off the socket, too
      if (status < 0 && watched.open) this.#start(watched); // libuv stops at an error
    } catch (error) {
      setImmediate(() => {
        throw error;
      });
    }
    setImmediate(runPendingJobs);
  }

  #closed(pointer: bigint): void {
    const watched = this.#watched.get(pointer);
    if (watched !== undefined) clearInterval(watched.root);
    this.#watched.delete(pointer);
  }
}

/** Node runs promise jobs after its own callbacks only. */
function runPendingJobs(): void {}
