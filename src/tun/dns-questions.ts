/** DNS questions over UDP to other servers, answered by our service in their name. */
import { messageOf } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { DnsAnswers } from "#core/outbound.ts";
import { FairQueue } from "#lib/fair-queue.ts";
import { type Bounds, PerClientLimiter } from "#lib/in-flight.ts";
import { ipFromBytes } from "#net/address/ip.ts";
import type { Packet } from "#net/packet/packet.ts";
import type { PacketWriter } from "./packet-writer.ts";

/** Questions under way. At the bound further ones are dropped: clients ask again. */
const RUNNING: Bounds = { all: 4096, ofOne: 1024 };
/** Questions that are begun in one turn of the event loop: a flood must leave time for the packets of others. */
const BEGUN_IN_A_TURN = 8;

export interface DnsQuestionsEnv {
  /** Asked at every question; null: the `dns` section is off. */
  readonly dns: () => DnsAnswers | null;
  readonly log: Log;
  /** Called behind a flood of questions: what they took can be given back. */
  readonly onDnsSettled: () => void;
}

interface Question {
  readonly dns: DnsAnswers;
  readonly payload: Uint8Array;
  /** Addresses: of the client, and of the server that it asked. */
  readonly client: Uint8Array;
  readonly asked: Uint8Array;
  readonly clientPort: number;
  readonly askedPort: number;
}

export class DnsQuestions {
  readonly #env: DnsQuestionsEnv;
  readonly #writer: PacketWriter;
  readonly #questions: FairQueue<Question>;

  constructor(env: DnsQuestionsEnv, writer: PacketWriter) {
    this.#env = env;
    this.#writer = writer;
    this.#questions = new FairQueue<Question>({
      limiter: new PerClientLimiter(RUNNING),
      perTurn: BEGUN_IN_A_TURN,
      work: (question) => this.#answer(question),
      onSettled: env.onDnsSettled,
    });
  }

  /** False: questions are not answered here. No session is kept. The payload is copied. */
  ask(payload: Uint8Array, packet: Packet): boolean {
    const dns = this.#env.dns();
    if (dns === null) return false;
    const { bytes, sourceAt, destinationAt, addressBytes, sourcePort, destinationPort } = packet;
    const client = bytes.slice(sourceAt, sourceAt + addressBytes);
    const name = ipFromBytes(client);
    if (!this.#questions.admits(name)) return true; // a flood costs no more than that
    const asked = bytes.slice(destinationAt, destinationAt + addressBytes);
    const ports = { clientPort: sourcePort, askedPort: destinationPort };
    this.#questions.push(name, { dns, payload: Buffer.from(payload), client, asked, ...ports });
    return true;
  }

  async #answer({ dns, payload, client, asked, clientPort, askedPort }: Question): Promise<void> {
    try {
      const answer = await dns.answer(payload, this.#writer.udpRoom(client.length));
      this.#writer.udp(asked, askedPort, client, clientPort, answer);
    } catch (error) {
      this.#env.log.debug(() => `[TUN] no DNS question: ${messageOf(error)}`);
    }
  }
}
