/** Another implementation of WireGuard as the server of a node: wireguard-go in a namespace of the test. */
import { spawn } from "node:child_process";
import { generateKeyPairSync } from "node:crypto";
import { once } from "node:events";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { existsSync } from "node:fs";
import type { Netns } from "./netns.ts";
import { until } from "./until.ts";

export interface KeyPair {
  readonly privateKey: Buffer;
  readonly publicKey: Buffer;
}

export function keyPair(): KeyPair {
  const { privateKey, publicKey } = generateKeyPairSync("x25519");
  return {
    privateKey: privateKey.export({ format: "raw-private" }),
    publicKey: publicKey.export({ format: "raw-public" }),
  };
}

export interface ServerOptions {
  /** Its name is that of a socket of the machine, too: it must be the test's own. */
  readonly device: string;
  readonly keys: KeyPair;
  readonly port: number;
  readonly addresses: readonly string[];
  readonly client: {
    readonly publicKey: Buffer;
    readonly presharedKey: Buffer;
    readonly allowed: readonly string[];
  };
}

let made = 0;
export function deviceName(): string {
  return `wg${process.pid}x${made++}`;
}

/** Serves until it is disposed of. */
export async function startWireGuardGo(netns: Netns, options: ServerOptions): Promise<AsyncDisposable> {
  const { device, addresses } = options;
  const [program, ...args] = [...netns.prefix, "wireguard-go", "--foreground", device];
  const child = spawn(program as string, args, { stdio: "ignore" });
  const ended = once(child, "exit");
  const stop = async (): Promise<void> => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
    await ended;
  };
  try {
    const socket = `/var/run/wireguard/${device}.sock`;
    await until("the socket of wireguard-go", () => existsSync(socket));
    const answer = await tell(socket, settings(options));
    if (!answer.includes("errno=0")) throw new Error(`wireguard-go: ${answer}`);
    for (const address of addresses)
      await netns.ip(`address add ${address} dev ${device}${address.includes(":") ? " nodad" : ""}`);
    await netns.ip(`link set ${device} up`);
    return { [Symbol.asyncDispose]: stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

// https://www.wireguard.com/xplatform/#configuration-protocol
function settings({ keys, port, client }: ServerOptions): string {
  return `${[
    "set=1",
    `private_key=${keys.privateKey.toString("hex")}`,
    `listen_port=${port}`,
    `public_key=${client.publicKey.toString("hex")}`,
    `preshared_key=${client.presharedKey.toString("hex")}`,
    ...client.allowed.map((network) => `allowed_ip=${network}`),
  ].join("\n")}\n\n`;
}

async function tell(path: string, request: string): Promise<string> {
  const socket = connect(path);
  socket.end(request);
  return text(socket);
}
