import { MAX_STREAMS, REQUEST_TIMEOUT_MS, SERVER_IDLE_MS } from "#transport/mux/session.ts";
import type { KeptSessionHost } from "./kept-client.ts";
import { KeptMuxStream } from "./kept-mux-stream.ts";
import type { KeptOpenedStream } from "./kept-opened-stream.ts";
import type { MuxFraming } from "./mux-framing.ts";
import { MuxSession } from "./mux-session.ts";
import type { Wire, WireIo } from "./wire.ts";

/** That of a listener's client, which opens the streams. */
export class KeptMuxSession extends MuxSession<KeptOpenedStream> {
  protected readonly host: KeptSessionHost;
  #hasBegun = false;

  /** `prefaceBytes`: what comes in front of all frames. */
  constructor(inner: Wire, framing: MuxFraming, prefaceBytes: number, host: KeptSessionHost) {
    super(inner, framing, SERVER_IDLE_MS, () => host.wake());
    this.input.skip(prefaceBytes);
    this.host = host;
  }

  override turn(io: WireIo): boolean {
    if (!this.#hasBegun) this.inner.begin?.(io);
    this.#hasBegun = true;
    return super.turn(io);
  }

  /** One too many is refused alone. */
  onOpen(id: number): boolean {
    const { framing } = this;
    const isOpen = this.opened.has(id);
    if (!framing.mayOpen(id, isOpen)) return false;
    if (isOpen) return true;
    const isRefused = this.streams >= MAX_STREAMS;
    if (!isRefused) {
      const stream = this.newStream(id);
      this.opened.set(id, stream);
      this.all.add(stream);
    }
    const answer = isRefused ? framing.encodeRefused(id) : framing.encodeAccepted(id);
    if (answer !== null) this.say(answer);
    return true;
  }

  protected newStream(id: number): KeptOpenedStream {
    return new KeptMuxStream(this, this.host, id);
  }

  protected onEnd(): void {
    this.closeWith(false);
    for (const stream of this.all) stream.onLost();
  }

  protected override onTick(nowMs: number): void {
    for (const stream of this.all)
      if (!stream.isNamed && nowMs - stream.openedAtMs > REQUEST_TIMEOUT_MS) stream.drop();
  }
}
