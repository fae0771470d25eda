/**
 * A client up to the end of its handshake, and dest, with which it is connected meanwhile: whom does it speak with? Whatever it says
 * reaches dest as it is. Without I/O: what both say goes in, what is said to them comes out.
 */
import { AuthError, ProtocolError } from "#core/errors.ts";
import { HelloReader } from "#transport/tls13/hello-reader.ts";
import type { Admitted } from "./admission.ts";
import type { Answers } from "./answers.ts";
import { readDestFlight } from "./dest-flight.ts";
import { type EndsOfVisit, Finishing, type Judgement } from "./finishing.ts";
import { RealityConnection } from "./server-connection.ts";
import type { PreparedShare, ShapedFlight } from "./server-handshake.ts";

/** So long an admitted client waits for dest's answer; then it is dest's. */
export const ANSWER_TIMEOUT_MS = 30_000;
const NOTHING = Buffer.alloc(0);

/** A client that is let in, and what both go on with. */
export interface Finished {
  readonly admitted: Admitted;
  /** Bytes behind the end of the client's handshake are in it. */
  readonly connection: RealityConnection;
}

interface Answering {
  readonly admitted: Admitted;
  readonly prepared: PreparedShare | null;
}

/**
 * `hears`: the client's hello. `waits`: it is admitted, and for dest's answer. `finishes`: it was answered by us. `left`: it is
 * dest's business.
 */
type Stage = "hears" | "waits" | "finishes" | "finished" | "left";

const WHY_LEFT = {
  hears: () => new AuthError("no token of REALITY; the client is connected with dest"),
  waits: () => new ProtocolError("dest's handshake was not imitated; the client is connected with dest"),
  finishes: () => new AuthError("the client has repeated another one's hello; it is connected with dest"),
} as const;

export class Visit implements Disposable {
  readonly #answers: Answers;
  readonly #ends: EndsOfVisit;
  readonly #hello = new HelloReader();
  #stage: Stage = "hears";
  #answering: Answering | null = null;
  #finished: Finished | null = null;
  #finishing: Finishing | null = null;
  #fromDest: Buffer = NOTHING;
  #why: Error | null = null;

  constructor(answers: Answers, ends: EndsOfVisit) {
    this.#answers = answers;
    this.#ends = ends;
  }

  get stage(): Stage {
    return this.#stage;
  }

  get isOver(): boolean {
    return this.#stage === "left" || this.#stage === "finished";
  }

  /** Nothing more of dest is to be read for now. */
  get isFull(): boolean {
    return this.#stage === "finishes" && this.#finishing?.isFull === true;
  }

  /** Of one that is finished: to be called once, the connection is the caller's. */
  takeFinished(): Finished {
    const finished = this.#stage === "finished" ? this.#finished : null;
    if (finished === null) throw new Error("a handshake that is not finished");
    this.#finished = null;
    return finished;
  }

  /** Of one that is left: what dest has sent, and the client has not got. */
  get unsaid(): Buffer {
    return this.#fromDest;
  }

  /** Of one that is left. */
  get why(): Error {
    return this.#why ?? new Error("a client that is not dest's");
  }

  fromClient(bytes: Buffer): void {
    if (this.#stage === "hears") this.#hear(bytes);
    else if (this.#stage === "finishes") this.#judge(this.#finishing?.fromClient(bytes));
    else {
      this.#ends.toDest(bytes); // a client that is let in waits for its answer
      this.leave();
    }
  }

  #hear(bytes: Buffer): void {
    this.#ends.toDest(bytes);
    const message = this.#hello.push(bytes);
    if (message === "more") return;
    const admitted = message === "none" ? null : this.#answers.admit(message);
    if (admitted === null) return this.leave();
    this.#stage = "waits";
    this.#answering = { admitted, prepared: this.#answers.prepare(admitted) };
  }

  fromDest(bytes: Buffer): void {
    if (this.#stage === "finishes") return this.#judge(this.#finishing?.fromDest(bytes));
    this.#fromDest = this.#fromDest.length === 0 ? bytes : Buffer.concat([this.#fromDest, bytes]); // up to MAX_FLIGHT_BYTES and one piece
    if (this.#stage !== "waits" || this.#answering === null) return this.leave();
    const { admitted, prepared } = this.#answering;
    const flight = readDestFlight(this.#fromDest);
    if (flight === "more") return;
    const shaped = flight === "none" ? null : this.#answers.shape(admitted, flight, prepared);
    if (flight === "none" || shaped === null) return this.leave();
    const behind = this.#fromDest.subarray(flight.bytes);
    this.#fromDest = NOTHING;
    this.#answer(admitted, shaped, behind);
  }

  /** What the client gets in place of dest's answer. */
  #answer(admitted: Admitted, shaped: ShapedFlight, behind: Buffer): void {
    this.#ends.toClient(shaped.records);
    const connection = new RealityConnection(shaped, () => this.#answers.later(admitted));
    this.#finished = { admitted, connection };
    this.#finishing = new Finishing(connection, this.#ends);
    this.#stage = "finishes";
    connection.start();
    this.#judge(this.#finishing.fromDest(behind));
  }

  #judge(judgement: Judgement | undefined): void {
    if (judgement === "finished") this.#stage = "finished";
    else if (judgement === "dest") this.leave();
  }

  /** Does nothing where it is over. One of them has ended, or gone, or it takes too long. */
  leave(): void {
    const stage = this.#stage;
    if (stage === "left" || stage === "finished") return;
    this.#stage = "left";
    this.#why = WHY_LEFT[stage]();
    if (this.#finishing !== null) this.#fromDest = this.#finishing.giveBack();
    this[Symbol.dispose]();
  }

  [Symbol.dispose](): void {
    this.#finished?.connection[Symbol.dispose]();
    this.#finished = null;
  }
}
