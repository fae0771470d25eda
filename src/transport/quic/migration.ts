/** Follows a client to another address, and answers who asks whether an address is ours (RFC 9000 §8.2, §9). */
import type { PeerIds } from "./connection-ids.ts";
import type { PacketSender } from "./packet-sender.ts";
import type { Path } from "./path.ts";
import type { Paths } from "./paths.ts";
import type { Recovery } from "./recovery/recovery.ts";
import { FRAME } from "./wire/frames.ts";

export interface MigrationOptions {
  readonly paths: Paths;
  readonly sender: PacketSender;
  readonly recovery: Recovery;
  readonly peerIds: PeerIds;
  /** The peer is at another host. */
  onMoved(): void;
}

export class Migration {
  readonly #options: MigrationOptions;
  /** What the peer asks of the path of the packet that is being read; null: nothing. */
  #asked: Uint8Array | null = null;

  constructor(options: MigrationOptions) {
    this.#options = options;
  }

  onChallenge(data: Uint8Array): void {
    this.#asked = new Uint8Array(data);
  }

  /** A packet was read. `isMoving`: it is the newest of a client whose handshake is confirmed, and does not only probe. */
  onPacket(cameBy: Path, isMoving: boolean, nowMs: number): void {
    if (isMoving && cameBy !== this.#options.paths.current) this.#move(cameBy, nowMs);
    const asked = this.#asked;
    if (asked === null) return;
    this.#asked = null;
    // It goes where the question came from, and there alone.
    this.#say(cameBy, FRAME.pathResponse, asked);
  }

  #move(to: Path, nowMs: number): void {
    const { paths, peerIds } = this.#options;
    const isSameHost = paths.move(to);
    peerIds.change();
    this.#follow(isSameHost);
    this.#ask(nowMs);
  }

  #follow(isSameHost: boolean): void {
    const { paths, sender, recovery } = this.#options;
    sender.path = paths.current;
    recovery.marking = paths.current.marking;
    if (isSameHost) return;
    recovery.rtt.reset();
    sender.mtu.onSilence();
    this.#options.onMoved();
  }

  #ask(nowMs: number): void {
    const { paths, recovery } = this.#options;
    this.#say(paths.current, FRAME.pathChallenge, paths.ask(nowMs, recovery.rtt.probeTimeoutMs));
  }

  #say(path: Path, frame: number, data: Uint8Array): void {
    this.#options.sender.sendProbe(path, (out) => {
      out.byte(frame);
      out.put(data);
    });
  }

  /** When `Paths.dueAtMs` is over. */
  onTimer(nowMs: number): void {
    const turn = this.#options.paths.onTimer(nowMs);
    if (turn === "again") this.#ask(nowMs);
    if (turn === "back") this.#follow(false);
  }
}
