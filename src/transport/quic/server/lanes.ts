/**
 * Lanes: the sockets at one address, each read by a thread of its own. A connection id tells its lane, so packets of a client
 * that has moved to another address reach the thread of its connection.
 */
import type { SocketProgram } from "#core/sockets.ts";
import { byteAt } from "#lib/at.ts";

export interface Lane {
  readonly index: number;
  /** All lanes of the address; fewer than 129. */
  readonly count: number;
}

export const ONLY_LANE: Lane = { index: 0, count: 1 };

/** The first byte of an id of the lane leaves its index as the rest when it is divided by their count. */
export function markLane(id: Uint8Array, { index, count }: Lane): void {
  const first = byteAt(id, 0);
  const whole = first - (first % count);
  id[0] = whole + index > 255 ? index : whole + index;
}

// Classic BPF (linux/filter.h, linux/bpf_common.h); the program of a group of sockets is shown the payload alone.
const [LOAD_BYTE, IF_ANY, MODULO, RETURN, RETURN_RESULT] = [0x30, 0x45, 0x94, 0x06, 0x16];
const LONG_HEADER = 0x80;
/** No lane: the kernel goes by the addresses, as long as the client does not know an id of ours. */
const NONE = 0xffff_ffff;

/** Which lane a datagram is for. A short header has FIRST(1) and the id (RFC 9000 §17.3). */
export function chooseLane(count: number): SocketProgram {
  return [
    [LOAD_BYTE, 0, 0, 0],
    [IF_ANY, 0, 1, LONG_HEADER],
    [RETURN, 0, 0, NONE],
    [LOAD_BYTE, 0, 0, 1],
    [MODULO, 0, 0, count],
    [RETURN_RESULT, 0, 0, 0],
  ];
}
