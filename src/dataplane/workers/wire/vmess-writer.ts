import type { VmessDetails } from "#core/wire-details.ts";
import { MAX_CHUNK, MAX_PADDING } from "#protocols/vmess/body.ts";
import { type CipherMemory, TAG_BYTES } from "./cipher-memory.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { evenly, SealedWriter } from "./sealed-writer.ts";
import type { VmessCipher } from "./vmess-cipher.ts";

const MAX_PLAIN_BYTES = MAX_CHUNK - TAG_BYTES - MAX_PADDING;

/** The direction to the peer, in chunks; a server's begins with the response. */
export class VmessWriter extends SealedWriter {
  readonly #cipher: VmessCipher;
  /** Goes out in front of the first chunk; null: it is out. */
  #response: Uint8Array | null;
  /** What the next chunk carries at most. */
  #nextBytes: number;

  constructor(
    memory: CipherMemory,
    below: SealedBelow,
    cipher: VmessCipher,
    { response, nextBytes }: Pick<VmessDetails, "response" | "nextBytes">,
  ) {
    super(memory, below);
    this.#cipher = cipher;
    this.#response = response;
    this.#nextBytes = nextBytes;
  }

  protected seal(size: number): number {
    let end = this.#sayResponse();
    const most = evenly(size, MAX_PLAIN_BYTES);
    for (let from = 0; from < size;) {
      const bytes = Math.min(this.#nextBytes, most, size - from);
      end = this.#sealChunk(end, from, bytes);
      from += bytes;
      this.#nextBytes = MAX_PLAIN_BYTES;
    }
    return end;
  }

  /** The empty chunk that says the end. */
  protected override sealEnd(): number {
    return this.#sealChunk(this.#sayResponse(), 0, 0);
  }

  #sayResponse(): number {
    const response = this.#response;
    if (response === null) return 0;
    this.memory.wire.set(response);
    this.#response = null;
    return response.length;
  }

  /** The padding is zeros: peers ignore it. */
  #sealChunk(at: number, from: number, bytes: number): number {
    const { evp, plainAddresses, wire, wireAddresses } = this.memory;
    const cipher = this.#cipher;
    const padding = cipher.nextPadding();
    const bodyAt = cipher.writeSize(at, bytes + TAG_BYTES + padding);
    cipher.begin();
    evp.sealAt(cipher.context, wireAddresses.of(bodyAt), plainAddresses.of(from), bytes);
    cipher.advance();
    const end = bodyAt + bytes + TAG_BYTES;
    wire.fill(0, end, end + padding);
    return end + padding;
  }
}
