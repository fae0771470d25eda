import type { PlainHandshake, Switched } from "#core/accepted.ts";
import type { AcceptCalls } from "#platform/linux/accept-calls.ts";
import { EAGAIN, EINTR } from "#platform/linux/relay-calls.ts";
import { readPlain, type PlainRequest } from "#protocols/mixed/plain-handshake.ts";
import { NO_AUTHENTICATION } from "#dataplane/workers/shared/slot-tag.ts";
import { REQUEST_BYTES } from "#dataplane/workers/shared/request-memory.ts";
import { type ClientBytes, FOR_MAIN } from "./client-bytes.ts";
import { readSwitch } from "./client-upgrade.ts";

/**
 * What was found in what a client says first. `wait`: it is not whole. `switched`: its request to switch was answered, and
 * what it says behind that is to be read. `other`: the event loop has to read it. `end`, `fault`: it is over.
 */
export type Reading = PlainRequest | "wait" | "switched" | "other" | "end" | "fault";

/** Reads a client's request and leaves it where it is; answers what is asked in front of it. */
export class ClientReader {
  /** By SOCKS5. */
  greeted = false;
  /** What it was switched to; null: it was not. */
  switched: Switched | null = null;
  /** So many bytes were there when the request was found. */
  seen = 0;
  readonly #calls: AcceptCalls;
  readonly #bytes: ClientBytes;
  readonly #handshake: PlainHandshake;
  /** Where it is to ask for a switch from HTTP/1.1; empty: it was answered, or is not asked for. */
  #path: string;

  constructor(calls: AcceptCalls, bytes: ClientBytes, handshake: PlainHandshake, path: string) {
    this.#calls = calls;
    this.#bytes = bytes;
    this.#handshake = handshake;
    this.#path = path;
  }

  /** `isOver`: nothing follows what is there. */
  read(isOver: boolean): Reading {
    const size = this.#bytes.look();
    if (size === FOR_MAIN || (size === EAGAIN && isOver)) return "other";
    if (size === EAGAIN || size === EINTR) return "wait";
    if (size <= 0) return size < 0 ? "fault" : "end";
    this.seen = size;
    if (this.#path === "" && this.#handshake === "first-bytes")
      return { from: 0, size: Math.min(size, REQUEST_BYTES), wish: null };
    const { bytes } = this.#calls;
    const said = bytes.subarray(0, size);
    const reading = this.#path === "" ? this.#readPlain(said) : this.#readSwitch(said);
    // No more of it is to be seen than these bytes.
    const hasAll = isOver || size === bytes.length || (this.#path !== "" && this.#bytes.comesWhole);
    return reading === "wait" && hasAll ? "other" : reading;
  }

  #readPlain(bytes: Buffer): Reading {
    const step = readPlain(this.#handshake, bytes);
    if (step === "wait" || step === "other") return step;
    if (step.greets && !this.greeted) {
      if (this.#bytes.say(NO_AUTHENTICATION) < 0) return "fault";
      this.greeted = true;
    }
    return step.request ?? "wait";
  }

  #readSwitch(bytes: Buffer): Reading {
    const step = readSwitch(bytes, this.#path);
    if (step === "wait" || step === "other") return step;
    const { answer, size, switched } = step;
    if (this.#bytes.consume(size) !== size || this.#bytes.say(answer) !== answer.length) return "fault";
    this.#path = "";
    this.switched = switched;
    return "switched";
  }

  /** So many bytes are looked at once more. False: they are not there any more. */
  looksAgain(size: number): boolean {
    return size === 0 || this.#bytes.look() >= size;
  }
}
