/** What dest sends to a client whose handshake is done, before the client says anything: tickets and settings of HTTP/2. */
import type { Duplex } from "node:stream";
import { asError } from "#core/errors.ts";
import { Retry } from "#lib/retry.ts";
import { CHROME_133 } from "#transport/tls13/fingerprints/chrome.ts";
import { ALPN_KINDS } from "./dest-board.ts";
import { type DestHandshake, shakeHandsWithDest } from "./dest-handshake.ts";

/** Dest may have changed by then. */
const VALID_MS = 6 * 3600_000;
const DIAL_MS = 10_000;
/** Records that come later are not answers to the handshake. */
const LISTEN_MS = 5000;
/** The failure in a row that is worth a word: at a start nothing can be dialled at first. */
const TOLD_FAILURE = 3;

export interface DestProbeEnv {
  readonly dial: (signal: AbortSignal) => Promise<Duplex>;
  /** Each answer, by kind of ALPN (`ALPN_KINDS`); or why there is none, once it has failed some times in a row. */
  readonly onAnswer: (serverName: string, alpn: number, answer: DestHandshake | Error) => void;
}

/** Asks dest in advance, once for each name and kind of ALPN, and again when the answer is old. It is never waited for. */
export class DestProbe implements Disposable {
  readonly #env: DestProbeEnv;
  readonly #questions = new Map<string, Question>();
  readonly #end = new AbortController();

  constructor(env: DestProbeEnv) {
    this.#env = env;
  }

  /** Of records with their headers, as far as they are known now. `serverName`: one of the listener's, so there are few; `alpn`: as `alpnKind` has it. */
  lengths(serverName: string, alpn: number): readonly number[] {
    const key = `${serverName} ${alpn}`;
    let question = this.#questions.get(key);
    if (question === undefined)
      this.#questions.set(key, (question = new Question(serverName, alpn, this.#env, this.#end.signal)));
    return question.lengths;
  }

  [Symbol.dispose](): void {
    this.#end.abort(new Error("the listener was closed"));
    for (const question of this.#questions.values()) question.stop();
  }
}

/** One kind of hello, and what dest answered last. */
class Question {
  readonly #serverName: string;
  readonly #alpn: number;
  readonly #env: DestProbeEnv;
  readonly #signal: AbortSignal;
  readonly #retry = new Retry(() => this.#ask());
  #lengths: readonly number[] = [];
  #askAgainMs = 0;
  #failures = 0;

  constructor(serverName: string, alpn: number, env: DestProbeEnv, signal: AbortSignal) {
    this.#serverName = serverName;
    this.#alpn = alpn;
    this.#env = env;
    this.#signal = signal;
  }

  get lengths(): readonly number[] {
    const nowMs = performance.now();
    if (nowMs >= this.#askAgainMs && !this.#signal.aborted) {
      this.#askAgainMs = nowMs + VALID_MS;
      this.#ask().catch(() => this.#retry.start());
    }
    return this.#lengths;
  }

  async #ask(): Promise<void> {
    const signal = this.#signal;
    const [serverName, alpn] = [this.#serverName, this.#alpn];
    const offered = ALPN_KINDS[alpn] ?? null;
    const protocols = offered === "h2" ? null : offered === null ? [] : [offered];
    const asked = { template: CHROME_133, serverName, protocols, listenMs: LISTEN_MS, signal };
    try {
      const dest = await this.#env.dial(AbortSignal.any([signal, AbortSignal.timeout(DIAL_MS)]));
      const answer = await shakeHandsWithDest(dest, asked);
      this.#lengths = answer.later; // what was known before holds until then
      this.#failures = 0;
      this.#env.onAnswer(serverName, alpn, answer);
    } catch (error) {
      if (signal.aborted) return;
      if (++this.#failures === TOLD_FAILURE) this.#env.onAnswer(serverName, alpn, asError(error));
      throw error;
    }
  }

  stop(): void {
    this.#retry.stop();
  }
}
