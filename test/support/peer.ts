/** Programs of others that tests talk to. They are started on loopback with ports that were free a moment ago. */
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { readFile } from "node:fs/promises";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import type { Network } from "#core/session.ts";
import { freePorts } from "./free-ports.ts";

/** The reason to skip where one of the programs is not installed; false where all are. */
export function missing(...programs: readonly string[]): string | false {
  const absent = programs.filter((program) => spawnSync("sh", ["-c", `command -v ${program}`]).status !== 0);
  return absent.length === 0 ? false : `SKIP ${absent.join(", ")}: not installed`;
}

export async function freePort(): Promise<number> {
  const [port] = await freePorts(1);
  return port as number;
}

export interface Peer extends AsyncDisposable {
  output(): string;
}

/** Starts a program and waits until it listens on the port. Fails with its output where it does not within 30 s. */
export async function startPeer(
  command: readonly string[],
  port: number,
  network: Network = "tcp",
): Promise<Peer> {
  const listens = network === "tcp" ? takesConnections : isBound;
  const child = spawn(command[0] as string, command.slice(1), {
    stdio: ["ignore", "pipe", "pipe"],
    detached: true, // a group of its own: what the program starts ends with it
  });
  let printed = "";
  child.stdout.on("data", (text: Buffer) => (printed += text));
  child.stderr.on("data", (text: Buffer) => (printed += text));
  const exited = once(child, "exit");
  const stop = async () => {
    if (child.exitCode === null && child.signalCode === null) process.kill(-(child.pid as number), "SIGKILL");
    await exited;
  };
  for (let tries = 0; !(await listens(port)); tries++) {
    if (tries < 600 && child.exitCode === null) await delay(50);
    else {
      await stop();
      throw new Error(`${command.join(" ")} does not listen on ${port}; it printed:\n${printed}`);
    }
  }
  return { output: () => printed, [Symbol.asyncDispose]: stop };
}

/** Does any program have a UDP socket on the port? Linux says so in its list, where the port is in hexadecimal digits. */
async function isBound(port: number): Promise<boolean> {
  const place = `:${port.toString(16).toUpperCase().padStart(4, "0")} `;
  const lists = await Promise.all(["udp", "udp6"].map((name) => readFile(`/proc/net/${name}`, "latin1")));
  return lists.some((list) => list.split("\n").some((line) => line.slice(0, 52).includes(place)));
}

function takesConnections(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ port, host: "127.0.0.1" });
    socket.on("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.on("error", () => resolve(false));
  });
}
