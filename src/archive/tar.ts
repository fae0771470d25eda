/** tar.gz archives, entry by entry: only a piece of what is unpacked is in memory. */
import { createGunzip } from "node:zlib";
import { Readable } from "node:stream";
import { messageOf, ProtocolError } from "#core/errors.ts";
import { Budget, tooLarge, type ArchiveLimits } from "./budget.ts";
import type { ArchiveEntry } from "./entry-path.ts";
import { BLOCK, isMeta, nameIn, placeOf, readHeader } from "./tar-header.ts";

/** A file or a folder of an archive that is read from its beginning to its end. */
export interface TarEntry {
  /** As `ArchiveEntry` has it. */
  readonly path: readonly string[];
  readonly isExecutable: boolean;
  /** To be read before the next entry is asked for; what is left is passed over. Null: a folder. */
  readonly pieces: AsyncIterable<Buffer> | null;
}

/** What an entry may take besides its contents: its header, a pax header or long name, padding. */
const HEADER_BYTES_PER_ENTRY = 3 * BLOCK;
/** Of what is unpacked in one step. */
const PIECE_BYTES = 256 * 1024;

/** The same in memory. */
export async function* readTarGz(archive: Buffer, limits: ArchiveLimits): AsyncIterable<ArchiveEntry> {
  const packed = Readable.from([archive]);
  for await (const { path, pieces } of readTarGzStream(packed, archive.length, limits))
    yield { path, bytes: pieces === null ? null : Buffer.concat(await Array.fromAsync(pieces)) };
}

/**
 * `packed` has `packedBytes` bytes, and is destroyed. Throws `ProtocolError` for links, devices, names that lead out,
 * damage, and contents beyond the limits, which are counted before they are unpacked.
 */
export async function* readTarGzStream(
  packed: Readable,
  packedBytes: number,
  limits: ArchiveLimits,
): AsyncIterable<TarEntry> {
  const budget = new Budget(packedBytes, limits);
  const most = budget.leftBytes + limits.maxEntries * HEADER_BYTES_PER_ENTRY;
  const unpacker = createGunzip({ chunkSize: PIECE_BYTES });
  packed.once("error", (error) => unpacker.destroy(error));
  const tar = new TarReader(packed.pipe(unpacker), most);
  try {
    let longName: string | null = null;
    for (;;) {
      const header = readHeader(await tar.take(BLOCK));
      if (header === null) return await tar.passRest();
      budget.takeEntry();
      const { type, sizeBytes, isExecutable } = header;
      if (isMeta(header)) {
        longName = nameIn(header, await tar.take(sizeBytes)) ?? longName;
        await tar.pass(padding(sizeBytes));
        continue;
      }
      const place = placeOf(type, longName ?? header.name);
      longName = null;
      budget.take(sizeBytes);
      const contents = new Contents(tar, sizeBytes);
      if (place !== null)
        yield { path: place.path, isExecutable, pieces: place.isFolder ? null : contents.pieces() };
      await contents.pass();
      await tar.pass(padding(sizeBytes));
    }
  } finally {
    packed.destroy();
    unpacker.destroy();
  }
}

const padding = (sizeBytes: number): number => -sizeBytes & (BLOCK - 1);

/** Of one entry. */
class Contents {
  readonly #tar: TarReader;
  #left: number;

  constructor(tar: TarReader, sizeBytes: number) {
    this.#tar = tar;
    this.#left = sizeBytes;
  }

  async *pieces(): AsyncIterable<Buffer> {
    while (this.#left > 0) {
      const piece = await this.#tar.some(this.#left);
      this.#left -= piece.length;
      yield piece;
    }
  }

  async pass(): Promise<void> {
    await this.#tar.pass(this.#left);
  }
}

function damaged(error: unknown): never {
  throw new ProtocolError(`the archive is damaged: ${messageOf(error)}`, { cause: error });
}

/** The unpacked bytes, in the portions that are asked for. */
class TarReader {
  readonly #chunks: AsyncIterator<Buffer>;
  #here: Buffer = Buffer.alloc(0);
  #leftBytes: number;

  constructor(unpacked: Readable, mostBytes: number) {
    this.#chunks = unpacked[Symbol.asyncIterator]();
    this.#leftBytes = mostBytes;
  }

  /** At least a byte, `most` at most. */
  async some(most: number): Promise<Buffer> {
    if (this.#here.length === 0 && !(await this.#next()))
      throw new ProtocolError("the tar archive is cut short");
    const piece = this.#here.subarray(0, most);
    this.#here = this.#here.subarray(piece.length);
    return piece;
  }

  async take(bytes: number): Promise<Buffer> {
    const pieces: Buffer[] = [];
    for (let left = bytes; left > 0;) {
      const piece = await this.some(left);
      pieces.push(piece);
      left -= piece.length;
    }
    return Buffer.concat(pieces);
  }

  async pass(bytes: number): Promise<void> {
    for (let left = bytes; left > 0;) left -= (await this.some(left)).length;
  }

  /** The sum of gzip stands at the end. */
  async passRest(): Promise<void> {
    while (await this.#next());
  }

  async #next(): Promise<boolean> {
    const { value, done } = await this.#chunks.next().catch(damaged);
    if (done === true) return false;
    this.#leftBytes -= value.length;
    if (this.#leftBytes < 0) throw tooLarge();
    this.#here = value;
    return true;
  }
}
