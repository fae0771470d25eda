/** The NAT of the system stack: a port for every TCP flow, which no other flow gets while a socket uses it. */
import type { Endpoint, Ip } from "#core/session.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { FlowTable } from "./flow-table.ts";
import { IdleList } from "./idle-list.ts";
import { byteAt, int32At } from "#lib/at.ts";
import { decodeNatState, type NatState } from "./nat-state.ts";

export const FIRST_NAT_PORT = 10_000;
const NAT_PORTS = 65_536 - FIRST_NAT_PORT;
/** A flow without a socket, before the accept or after the close, is forgotten after this long without a packet. */
const REST_MS = 60_000;
const NONE = -1;

export interface NatFlow {
  readonly slot: number;
  readonly source: Endpoint;
  readonly destination: Endpoint;
}

/**
 * Flows by source, destination and their ports, one table for each family. A flow with an open socket stays; the others
 * are in a list by the time of their last packet, and are dropped from its head. With all ports taken, the flow at the
 * head gives its port to a new one; when all have open sockets, a new flow is refused.
 */
export class NatTable {
  /** A key: source address, destination address, the two ports in one word. */
  readonly flows: FlowTable;
  readonly #addressWords: number;
  readonly #held = new Uint8Array(NAT_PORTS);
  /** Of those that no socket holds. */
  readonly #line = new IdleList(NAT_PORTS);

  constructor(family: 4 | 6) {
    this.#addressWords = family === 4 ? 1 : 4;
    this.flows = new FlowTable(NAT_PORTS, this.#addressWords * 2 + 1);
  }

  get size(): number {
    return this.flows.size;
  }

  /** The NAT port of `flows.key`; 0 where it has none. Counts as a packet. */
  find(nowMs: number): number {
    const slot = this.flows.find();
    if (slot === NONE) return 0;
    this.#touch(slot, nowMs);
    return slot + FIRST_NAT_PORT;
  }

  /** A port for `flows.key`, which has none; 0: all are held. */
  add(nowMs: number): number {
    if (this.flows.size === NAT_PORTS) this.#forgetHead();
    const slot = this.flows.insert();
    if (slot === NONE) return 0;
    this.#line.append(slot, nowMs);
    return slot + FIRST_NAT_PORT;
  }

  /** The slot of a NAT port whose flow is known, else -1. Counts as a packet. */
  slotOf(port: number, nowMs: number): number {
    const slot = port - FIRST_NAT_PORT;
    if (slot < 0 || !this.flows.isLive(slot)) return NONE;
    this.#touch(slot, nowMs);
    return slot;
  }

  /** The flow of a NAT port; null: none. */
  endpointsOf(port: number): NatFlow | null {
    const slot = port - FIRST_NAT_PORT;
    if (slot < 0 || !this.flows.isLive(slot)) return null;
    const words = this.#addressWords;
    const ports = this.flows.word(slot, words * 2);
    return {
      slot,
      source: { ip: this.#address(slot, 0), port: ports >>> 16 },
      destination: { ip: this.#address(slot, words), port: ports & 0xffff },
    };
  }

  #address(slot: number, from: number): Ip {
    const bytes = new Uint8Array(this.#addressWords * 4);
    const view = new DataView(bytes.buffer);
    for (let index = 0; index < this.#addressWords; index++)
      view.setInt32(index * 4, this.flows.word(slot, from + index));
    return ipFromBytes(bytes);
  }

  /** A socket has the flow: it stays until `release`, which comes once for each call. */
  hold(slot: number): void {
    if (this.#held[slot] === 0) this.#line.remove(slot);
    this.#held[slot] = byteAt(this.#held, slot) + 1;
  }

  release(slot: number, nowMs: number): void {
    this.#held[slot] = byteAt(this.#held, slot) - 1;
    if (this.#held[slot] === 0) this.#line.append(slot, nowMs);
  }

  /** As another process takes it over. */
  get state(): NatState {
    const { flows } = this;
    const words = this.#addressWords * 2 + 1;
    const rows: number[] = [];
    for (let slot = 0; slot < NAT_PORTS; slot++) {
      if (!flows.isLive(slot)) continue;
      rows.push(slot, byteAt(this.#held, slot) > 0 ? 1 : 0);
      for (let index = 0; index < words; index++) rows.push(flows.word(slot, index));
    }
    return { words, flows: Int32Array.from(rows), free: flows.free };
  }

  /**
   * Into a table that is empty. Flows that sockets of the other process have are held until the function that it answers
   * with is called. Null: it is no such state.
   */
  restore(bytes: Uint8Array, nowMs: number): ((nowMs: number) => void) | null {
    const words = this.#addressWords * 2 + 1;
    const state = decodeNatState(bytes, words, NAT_PORTS);
    if (state === null) return null;
    const held: number[] = [];
    for (let at = 0; at < state.flows.length; at += words + 2) {
      const slot = int32At(state.flows, at);
      this.flows.key.set(state.flows.subarray(at + 2, at + 2 + words));
      this.flows.place(slot);
      this.#line.append(slot, nowMs);
      if (state.flows[at + 1] === 1) held.push(slot);
    }
    this.flows.setFree(state.free);
    for (const slot of held) this.hold(slot);
    return (endMs) => {
      for (const slot of held.splice(0)) this.release(slot, endMs);
    };
  }

  /** Drops flows that have been idle for long enough. */
  sweep(nowMs: number): void {
    while (this.#line.hasRested(REST_MS, nowMs)) this.#forgetHead();
  }

  #touch(slot: number, nowMs: number): void {
    if (this.#held[slot] === 0) this.#line.touch(slot, nowMs);
  }

  #forgetHead(): void {
    const slot = this.#line.head;
    if (slot === NONE) return;
    this.#line.remove(slot);
    this.flows.delete(slot);
  }
}
