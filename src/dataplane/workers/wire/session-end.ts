import { performance } from "node:perf_hooks";
import { hasArrived } from "./has-arrived.ts";
import type { MuxOutput } from "./mux-output.ts";
import type { Wire, WireIo } from "./wire.ts";

/** By then all that was said has gone out, and has arrived, or the connection is closed as it is. */
const CLOSING_MS = 10_000;

/** The end of a session in order: what it has said goes out, then the end of its wire, and all of that arrives. */
export class SessionEnd {
  /** Nothing more is read, and nothing more is said. */
  isBegun = false;
  /** It has come about, or time is up. */
  isOver = false;
  /** When time is up; Infinity: it has not begun. */
  atMs = Infinity;
  #isWritten = false;

  begin(): void {
    this.isBegun = true;
    this.atMs = performance.now() + CLOSING_MS;
  }

  /** `output`: of the session, over that wire, which may owe something again once its end is written. */
  turn(io: WireIo, wire: Wire, output: MuxOutput): void {
    if (!output.isOwing && !this.#isWritten) {
      this.#isWritten = true;
      wire.endWriting(io);
    }
    const isOut = this.#isWritten && !output.isOwing && hasArrived(io.calls, wire.fd);
    this.isOver = isOut || performance.now() >= this.atMs;
  }
}
