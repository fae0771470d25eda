import { CLIENT_IDLE_MS } from "#transport/mux/session.ts";
import { Silence } from "#transport/mux/silence.ts";
import type { MuxFraming, SessionStream } from "./mux-framing.ts";
import { MuxSession } from "./mux-session.ts";
import type { Wire } from "./wire.ts";

/** That of a connection to the server of a node. */
export class NodeMuxSession extends MuxSession {
  #nextId: number;
  readonly #silence = new Silence();

  /** `opening`: what goes out in front of all frames. */
  constructor(inner: Wire, framing: MuxFraming, opening: Uint8Array, wake: () => void) {
    super(inner, framing, CLIENT_IDLE_MS, wake);
    this.say(opening);
    this.#nextId = framing.firstId;
  }

  get isUsable(): boolean {
    const { lastId, mostStreams } = this.framing;
    return this.isOpen && this.streams < mostStreams && this.#nextId + 2 * this.streams < lastId;
  }

  /** What is new had better go by another one. */
  get isSilent(): boolean {
    return this.#silence.isLong;
  }

  enter(stream: SessionStream): void {
    this.all.add(stream);
    this.#silence.asked();
  }

  protected override onHeard(): void {
    this.#silence.heard();
  }

  protected override onUnused(): void {
    this.#silence.unused();
  }

  /** With the next write. Answers with its number. */
  open(stream: SessionStream, request: Uint8Array): number {
    const id = this.#nextId;
    this.#nextId += 2;
    this.opened.set(id, stream);
    this.say(this.framing.encodeOpen(id));
    if (request.length > 0) this.sayData(id, request);
    return id;
  }

  onOpen(): boolean {
    return false; // servers open nothing
  }

  protected onEnd(): void {
    this.die();
  }
}
