/** DNS questions over UDP to other servers, answered by our service in their name. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { DnsAnswers } from "#core/outbound.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import { type Bounds, PerClientLimiter } from "#lib/in-flight.ts";
import type { Packet } from "./packet.ts";
import type { PacketWriter } from "./packet-writer.ts";

/** Questions under way. At the bound further ones are dropped: clients ask again. */
const RUNNING: Bounds = { all: 4096, ofOne: 1024 };

export interface DnsQuestionsEnv {
  /** Asked at every question; null: the `dns` section is off. */
  readonly dns: () => DnsAnswers | null;
  readonly log: Log;
}

export class DnsQuestions {
  readonly #env: DnsQuestionsEnv;
  readonly #writer: PacketWriter;
  readonly #running = new PerClientLimiter(RUNNING);

  constructor(env: DnsQuestionsEnv, writer: PacketWriter) {
    this.#env = env;
    this.#writer = writer;
  }

  /** False: questions are not answered here. No session is kept. Takes ownership of the payload. */
  ask(payload: Uint8Array, packet: Packet): boolean {
    const dns = this.#env.dns();
    if (dns === null) return false;
    const { bytes, sourceAt, destinationAt, addressBytes, sourcePort, destinationPort } = packet;
    const client = bytes.slice(sourceAt, sourceAt + addressBytes);
    const name = ipFromBytes(client);
    if (!this.#running.enter(name)) return true; // a flood costs no more than that
    const asked = bytes.slice(destinationAt, destinationAt + addressBytes);
    const mostBytes = this.#writer.udpRoom(addressBytes);
    dns
      .answer(payload, mostBytes)
      .then(
        (answer) => void this.#writer.udp(asked, destinationPort, client, sourcePort, answer),
        (error: unknown) => this.#env.log.debug(() => `[TUN] no DNS question: ${messageOf(error)}`),
      )
      .finally(() => this.#running.leave(name));
    return true;
  }
}
