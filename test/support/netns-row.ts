/** Client – router – origin in namespaces. The router forwards nothing: what arrives went through a program on it. */
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { link, openNetns, type Netns } from "./netns.ts";

export const ROUTER = ["203.0.113.1", "fd00:1::1"] as const;
export const ORIGIN = ["198.51.100.2", "fd00:2::2"] as const;
/** One name each and its `curl` and `nft` spellings are the same everywhere. */
export const FAMILIES = [
  { name: "IPv4", router: ROUTER[0], origin: ORIGIN[0], url: `http://${ORIGIN[0]}/` },
  { name: "IPv6", router: ROUTER[1], origin: ORIGIN[1], url: `http://[${ORIGIN[1]}]/` },
] as const;

/** What a page of the manual shows between ```language and ```: the first such block. */
export function manual(page: string, language: string): string {
  const text = readFileSync(join(here, "..", "..", "docs", "protocols", `${page}.md`), "utf8");
  const block = text.split(`\n\`\`\`${language}\n`)[1]?.split("```")[0];
  if (block === undefined) throw new Error(`docs/protocols/${page}.md has no ${language} block`);
  return block;
}

const here = dirname(fileURLToPath(import.meta.url));
const node = [process.execPath, "--disable-warning=ExperimentalWarning"];

export interface Row extends AsyncDisposable {
  readonly client: Netns;
  readonly router: Netns;
  readonly origin: Netns;
  /** One command of netns-near.ts in the client's namespace, or in another: what it printed. */
  near(what: string, host: string, ...numbers: readonly number[]): Promise<string>;
  nearIn(netns: Netns, what: string, host: string, ...numbers: readonly number[]): Promise<string>;
  /** The same, for a command that lives on: it is told lines and tells lines. */
  talk(what: string, host: string, ...numbers: readonly number[]): Talk;
}

export interface Talk {
  say(line: string): void;
  /** The next line; fails where the program ends first. */
  nextLine(): Promise<string>;
  /** Ends its input. */
  close(): void;
}

/** With the servers of netns-far.ts in the origin's namespace. */
export async function openRow(label: string): Promise<Row> {
  await using undo = new AsyncDisposableStack();
  const client = undo.use(await openNetns(`${label}-client`));
  const router = undo.use(await openNetns(`${label}-router`));
  const origin = undo.use(await openNetns(`${label}-origin`));
  await link(
    { netns: client, device: "up0", addresses: ["203.0.113.2/24", "fd00:1::2/64"] },
    { netns: router, device: "down0", addresses: [`${ROUTER[0]}/24`, `${ROUTER[1]}/64`] },
  );
  await link(
    { netns: router, device: "up0", addresses: ["198.51.100.1/24", "fd00:2::1/64"] },
    { netns: origin, device: "down0", addresses: [`${ORIGIN[0]}/24`, `${ORIGIN[1]}/64`] },
  );
  await client.ip(`route add default via ${ROUTER[0]}`, `-6 route add default via ${ROUTER[1]}`);
  const open = (netns: Netns, ...command: readonly string[]) => talkTo(netns, command, undo);
  const far = open(origin, ...node, join(here, "netns-far.ts"));
  await far.nextLine();
  const near = (what: string, host: string, numbers: readonly number[]) =>
    [...node, join(here, "netns-near.ts"), what, host, ...numbers.map(String)] as const;
  const nearIn = async (netns: Netns, what: string, host: string, ...numbers: readonly number[]) =>
    (await netns.run(...near(what, host, numbers))).trimEnd();
  const owned = undo.move();
  return {
    client,
    router,
    origin,
    nearIn,
    near: (what, host, ...numbers) => nearIn(client, what, host, ...numbers),
    talk: (what, host, ...numbers) => talkTo(client, near(what, host, numbers), owned),
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

/** A program that lives on inside a namespace, until `undo` is disposed of. */
export function talkTo(netns: Netns, command: readonly string[], undo: AsyncDisposableStack): Talk {
  const [program, ...args] = [...netns.prefix, ...command];
  const child = spawn(program as string, args, { stdio: ["pipe", "pipe", "inherit"] });
  const ended = once(child, "exit");
  undo.defer(async () => {
    if (child.exitCode === null && child.signalCode === null) child.kill("SIGKILL");
    await ended;
  });
  child.stdin.on("error", () => {}); // it has ended: the wait for its next line fails
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  return {
    say: (line) => void child.stdin.write(`${line}\n`),
    close: () => void child.stdin.end(),
    async nextLine() {
      const { value, done } = await lines.next();
      if (done === true) throw new Error(`${command.join(" ")} has ended`);
      return value as string;
    },
  };
}

/** What the machine itself still shows of this process's rows: namespaces, tables, rules, routes. */
export function leftovers(label: string): readonly string[] {
  const ours = new RegExp(
    `weir-${label}-\\w+-${process.pid}-|weir_(?:redir|tproxy|test)|203\\.0\\.113\\.|fd00:[12]::|lookup 100$`,
  );
  const looks = ["ip netns list", "nft list tables", "ip rule", "ip -6 rule", "ip route show table all"];
  return [...looks, "ip -6 route show table all", "ip link"].flatMap((look) => {
    const [program, ...args] = look.split(" ");
    const shown = execFileSync(program as string, args, { encoding: "utf8" });
    return shown.split("\n").filter((line) => ours.test(line));
  });
}
