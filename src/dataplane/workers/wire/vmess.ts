import { EAGAIN } from "#platform/linux/relay-calls.ts";
import type { VmessDetails } from "#core/wire-details.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { SealedWire } from "./sealed-wire.ts";
import { VmessCipher } from "./vmess-cipher.ts";
import { VmessReader } from "./vmess-reader.ts";
import { VmessWriter } from "./vmess-writer.ts";
import type { WireIo } from "./wire.ts";

export interface VmessStart {
  /**
   * 0 and 1: the contexts of opening and sealing. 2 and 3: of opened and sealed sizes, 0 where those are masked only. 4: 1
   * where a faulty peer is not to be reset.
   */
  word(at: number): number;
  /** Read from below already, and not opened. */
  readonly unread: Uint8Array | null;
  readonly details: VmessDetails;
  /** The socket stays open. */
  spare(): void;
}

/** The chunks of VMess, behind the request; a chunk of its own says the end. */
export class VmessWire extends SealedWire {
  readonly #memory: CipherMemory;
  readonly #sizes: { sealing: bigint; opening: bigint };
  readonly #writer: VmessWriter;
  readonly #spare: (() => void) | null;
  #hasSaidEnd = false;

  constructor(memory: CipherMemory, below: SealedBelow, { word, unread, details, spare }: VmessStart) {
    const contexts = { opening: BigInt(word(0)), sealing: BigInt(word(1)) };
    const sizes = { opening: BigInt(word(2)), sealing: BigInt(word(3)) };
    const { inward, outward, awaited } = details;
    const opener = new VmessCipher(memory, { bodies: contexts.opening, sizes: sizes.opening }, inward);
    const sealer = new VmessCipher(memory, { bodies: contexts.sealing, sizes: sizes.sealing }, outward);
    const writer = new VmessWriter(memory, below, sealer, details);
    const reader = new VmessReader(memory, below, opener, inward, { rest: unread, awaited });
    super({ memory, below, contexts, reader, writer });
    this.#memory = memory;
    this.#sizes = sizes;
    this.#writer = writer;
    this.#spare = word(4) === 1 ? spare : null;
  }

  protected override onBroken(): void {
    this.#spare?.();
  }

  /** First in VMess, then below. */
  override endWriting(io: WireIo): number {
    const said = this.#hasSaidEnd ? 0 : this.#writer.writeEnd(io);
    this.#hasSaidEnd = true;
    if (said < 0) return said;
    return this.#writer.pending ? EAGAIN : super.endWriting(io);
  }

  override drop(io: WireIo): void {
    super.drop(io);
    this.#memory.evp.free(this.#sizes);
  }
}
