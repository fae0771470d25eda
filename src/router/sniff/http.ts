/** HTTP/1.x: the Host field of a request head. */
import { hostVerdict } from "./host-name.ts";
import type { Probe, SniffProtocol, Verdict } from "./probe.ts";

/** A head that does not name its host within so many bytes is not looked at further. */
const MAX_HEAD_BYTES = 16 * 1024;
/** Longer than any registered method. */
const MAX_METHOD_BYTES = 20;

const LF = 10;
const REQUEST_LINE = /^[A-Z][A-Z-]* [\x21-\x7e]+ HTTP\/1\.[01]$/;
const PARTIAL_METHOD = /^[A-Z][A-Z-]*(?: |$)/;
const FIELD = /^([!#$%&'*+.^_`|~0-9A-Za-z-]+):(.*)$/;
/** uri-host [ ":" port ] (RFC 9112 §3.2); an address in brackets is no name. */
const HOST_AND_PORT = /^([^:[\]]+)(?::\d{0,5})?$/;

class HttpProbe implements Probe {
  /** The line under way; whole lines are forgotten. */
  #line = "";
  #size = 0;
  #lines = 0;

  feed(bytes: Uint8Array): Verdict {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length);
    let from = 0;
    for (let end = text.indexOf(LF); end >= 0; end = text.indexOf(LF, from)) {
      const line = this.#line + text.toString("latin1", from, end);
      this.#line = "";
      from = end + 1;
      const verdict = this.#onLine(line.endsWith("\r") ? line.slice(0, -1) : line);
      if (verdict !== "more") return verdict;
    }
    this.#line += text.toString("latin1", from, Math.min(text.length, from + MAX_HEAD_BYTES));
    this.#size += bytes.length;
    if (this.#size > MAX_HEAD_BYTES || !this.#mayBeRequest()) return "other";
    return "more";
  }

  /** Refuses what is no method at its first byte, so that other protocols wait for nothing. */
  #mayBeRequest(): boolean {
    if (this.#lines > 0 || this.#line === "") return true;
    const [method] = PARTIAL_METHOD.exec(this.#line) ?? [];
    return method !== undefined && method.length <= MAX_METHOD_BYTES;
  }

  #onLine(line: string): Verdict {
    if (this.#lines++ === 0) return REQUEST_LINE.test(line) ? "more" : "other";
    const [, name, value = ""] = FIELD.exec(line) ?? [];
    if (name === undefined) return "other"; // the end of the head, or no head
    if (name.toLowerCase() !== "host") return "more";
    const [, host] = HOST_AND_PORT.exec(value.trim()) ?? [];
    return host === undefined ? "other" : hostVerdict(host);
  }
}

export const http: SniffProtocol = { type: "HTTP", network: "tcp", open: () => new HttpProbe() };
