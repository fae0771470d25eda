/** The second factor beside the secrets: which codes were used, and how many were wrong. */
import { createHash, timingSafeEqual } from "node:crypto";
import type { CodeAnswer, CodeGate } from "#core/access.ts";
import { commandCredential, stepOf } from "./totp.ts";

/** Wrong codes in this time, of one address and of all: three codes of a million are right at any moment. */
const WITHIN_MS = 15 * 60_000;
const MOST_OF_ADDRESS = 5;
const MOST_WRONG = 10;

/** As it is kept: the last code of the secret with this digest that has opened something. */
export interface UsedCode {
  readonly secret: string;
  readonly step: number;
}

interface GateEnv {
  /** Unix time. */
  readonly nowMs: () => number;
  /** Settles when it is kept. Never rejects. */
  readonly keep: (used: UsedCode) => Promise<void>;
  readonly warn: (text: string) => void;
}

export class Codes implements CodeGate {
  readonly #env: GateEnv;
  #key: Buffer | null = null;
  #used: UsedCode | null = null;
  /** Of the last minutes, the oldest first. */
  #wrong: readonly { readonly atMs: number; readonly from: string }[] = [];

  constructor(env: GateEnv) {
    this.#env = env;
  }

  /** Null: no codes are asked for. */
  adopt(key: Buffer | null): void {
    this.#key = key;
  }

  /** What an earlier process kept. */
  recall(used: UsedCode): void {
    if (this.#used?.secret === used.secret && this.#used.step >= used.step) return;
    this.#used = used;
  }

  get isOn(): boolean {
    return this.#key !== null;
  }

  sessionMark(mark: string): string {
    return this.#key === null ? mark : `${mark} ${digestOf(this.#key)}`;
  }

  opensAsCommand(credential: string, mark: string): boolean {
    if (this.#key === null) return false;
    const wanted = commandCredential(this.#key, mark);
    return timingSafeEqual(Buffer.from(digestOf(credential)), Buffer.from(digestOf(wanted)));
  }

  async take(code: string, from: string): Promise<CodeAnswer> {
    const key = this.#key;
    if (key === null) return { kind: "right" };
    const nowMs = this.#env.nowMs();
    const waitMs = this.#waitMs(from, nowMs);
    if (waitMs > 0) return { kind: "later", afterSeconds: Math.ceil(waitMs / 1000) };
    const step = stepOf(key, code, nowMs);
    const secret = digestOf(key);
    const before = this.#used?.secret === secret ? this.#used.step : -1;
    if (step === null || step <= before) {
      this.#wrong = [...this.#wrong, { atMs: nowMs, from }];
      this.#env.warn(
        `svc.totp-file: a ${step === null ? "wrong" : "used"} code with the right secret, from ${from}`,
      );
      return { kind: step === null ? "wrong" : "used" };
    }
    await this.#env.keep((this.#used = { secret, step }));
    return { kind: "right" };
  }

  /** 0: another code may be tried. A clock that was set back does not prolong it. */
  #waitMs(from: string, nowMs: number): number {
    this.#wrong = this.#wrong.filter(({ atMs }) => Math.abs(nowMs - atMs) < WITHIN_MS);
    const own = this.#wrong.filter((one) => one.from === from);
    const first =
      own.length >= MOST_OF_ADDRESS ? own[0] : this.#wrong.length >= MOST_WRONG ? this.#wrong[0] : null;
    return first === null || first === undefined ? 0 : WITHIN_MS - Math.abs(nowMs - first.atMs);
  }
}

function digestOf(bytes: string | Uint8Array): string {
  return createHash("sha256").update(bytes).digest("base64");
}
