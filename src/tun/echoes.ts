/** Pings through a TUN. */
import type { TunDevice } from "#platform/tun.ts";
import type { Packet } from "./packet.ts";
import type { PacketWriter } from "./packet-writer.ts";
import type { TunSettings } from "./settings.ts";
import { echoBack } from "./stack.ts";

export interface EchoEnv {
  readonly settings: TunSettings;
  readonly device: TunDevice;
  readonly writer: PacketWriter;
  readonly decide: () => void;
}

export class Echoes {
  readonly #env: EchoEnv;

  constructor(env: EchoEnv) {
    this.#env = env;
  }

  ask(packet: Packet): void {
    echoBack(packet, this.#env.device);
  }

  tick(): void {}

  close(): void {}
}
