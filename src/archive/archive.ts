/** Archives from elsewhere, read in memory: what they may hold, and which kind a byte string is. */
import { ProtocolError } from "#core/errors.ts";
import { readTarGz } from "./tar.ts";
import { readZip } from "./zip.ts";
import type { ArchiveLimits } from "./budget.ts";
import type { ArchiveEntry } from "./entry-path.ts";

/**
 * The entries of a zip or tar.gz archive one after the other; each is unpacked when it is iterated. Links, devices,
 * encrypted or split archives, names that lead out and contents beyond the limits are a `ProtocolError`, and so is
 * every kind of damage. A name may come twice: the writer must refuse to overwrite.
 */
export function readArchive(archive: Uint8Array, limits: ArchiveLimits): AsyncIterable<ArchiveEntry> {
  const bytes = Buffer.from(archive.buffer, archive.byteOffset, archive.byteLength);
  if (bytes.length > 4 && bytes.readUInt16LE(0) === 0x4b50) return readZip(bytes, limits); // "PK"
  if (bytes.length > 2 && bytes.readUInt16BE(0) === 0x1f8b) return readTarGz(bytes, limits); // RFC 1952 §2.3.1
  throw new ProtocolError("the archive is neither zip nor tar.gz");
}
