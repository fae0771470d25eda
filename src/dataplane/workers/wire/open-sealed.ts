import type { WireDetails } from "#core/wire-details.ts";
import { ENCRYPTED, SEALED, type VMESS } from "#dataplane/workers/shared/wire-spec.ts";
import type { CipherMemory } from "./cipher-memory.ts";
import { openEncryptedWire } from "./encrypted.ts";
import type { SealedBelow } from "./sealed-below.ts";
import { ShadowsocksWire } from "./shadowsocks.ts";
import { VmessWire } from "./vmess.ts";
import type { Wire } from "./wire.ts";

/** What the main thread said of sealed messages, whatever lies below them. */
export interface SealedStart {
  /** As the wires of each form count them. */
  word(at: number): number;
  /** Read from below already, and not opened. */
  readonly unread: Uint8Array | null;
  readonly details: WireDetails;
  /** The context at such a place is the wire's now. */
  keep(at: number, context: bigint): void;
  /** What lies below stays open. */
  spare(): void;
}

/** Null: something of what was said is missing. */
export function openSealed(
  form: typeof SEALED | typeof VMESS | typeof ENCRYPTED,
  memory: CipherMemory,
  below: SealedBelow,
  start: SealedStart,
): Wire | null {
  const { shadowsocks, vmess } = start.details;
  if (form === ENCRYPTED) return openEncryptedWire(memory, below, start);
  if (form === SEALED) return new ShadowsocksWire(memory, below, { ...start, details: shadowsocks });
  return vmess === undefined ? null : new VmessWire(memory, below, { ...start, details: vmess });
}
