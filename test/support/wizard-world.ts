/** A program that has nothing but its Controller, for what the dashboard makes of it; and what its clients need. */
import { execFile, execFileSync } from "node:child_process";
import { once } from "node:events";
import { createSecureServer } from "node:http2";
import type { AddressInfo, Socket } from "node:net";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Page } from "playwright-core";
import { makeCertificate } from "./certificate.ts";
import { freePorts } from "./free-ports.ts";
import { startCore, type Core } from "./start-core.ts";

export const WEIR = join(import.meta.dirname, "..", "..", "bin", "weir");
export const run = promisify(execFile);
const SECRET = "the secret of the Controller of this test";

export interface Server {
  readonly base: string;
  readonly core: Core;
}

export interface Site extends AsyncDisposable {
  readonly port: number;
}

/** A site that REALITY can hide behind. */
export async function openSite(): Promise<Site> {
  const { cert, key } = makeCertificate({ names: ["localhost"] });
  const server = createSecureServer({ key, cert, allowHTTP1: true }, (_, response) => {
    response.end("the site");
  });
  const sockets = new Set<Socket>();
  server.on("connection", (socket: Socket) => sockets.add(socket.on("error", () => {})));
  server.on("sessionError", () => {}).on("tlsClientError", () => {});
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

export async function startServer(stack: AsyncDisposableStack): Promise<Server> {
  const [controller] = (await freePorts(1)) as [number];
  const core = stack.use(
    await startCore(`# kept as it is
external-controller: 127.0.0.1:${controller}
secret: ${SECRET}
proxy-groups:
  - { name: Way, type: select, proxies: [DIRECT] } # and this
rules:
  - IP-CIDR,127.0.0.0/8,DIRECT
  - MATCH,DIRECT
`),
  );
  return { base: `http://127.0.0.1:${controller}`, core };
}

export async function openInbounds(page: Page, { base }: Server): Promise<void> {
  await page.goto(`${base}/ui/#/inbounds`);
  await page.getByLabel("Secret").fill(SECRET);
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: "Listeners and nodes", level: 1 }).waitFor();
}

export const press = (page: Page, name: string) => page.getByRole("button", { name, exact: true }).click();

/** That a secret is wanted is found out by asking. */
export const isFault = (text: string): boolean => !text.includes("401 (Unauthorized)");

/** Fills the first step for a REALITY listener on loopback, and shows its change. */
export async function fillReality(page: Page, name: string, port: number, site: Site): Promise<void> {
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByLabel("Reachable from").selectOption("127.0.0.1");
  await page.getByLabel("Port", { exact: true }).fill(String(port));
  await page.getByText("The port is free.").waitFor();
  await page.getByLabel("REALITY target (dest)").fill(`127.0.0.1:${site.port}`);
  await page.getByLabel("Server name of the target").fill("localhost");
  await page.getByLabel("Public address of this server").fill("https://127.0.0.1");
  await press(page, "Show the change");
  await page.getByText("No errors and no warnings").waitFor();
}

/** A client of our own that has nothing but the link. */
export interface LinkClient extends AsyncDisposable {
  /** What comes of a URL through it; rejects where nothing comes. */
  get(url: string): Promise<string>;
}

export async function startClient(link: string): Promise<LinkClient> {
  const { stdout } = await run(WEIR, ["link", link]);
  const name = (/name: (.*)/.exec(stdout)?.[1] ?? "").replaceAll('"', "");
  const [mixed] = (await freePorts(1)) as [number];
  const core = await startCore(`mixed-port: ${mixed}\n${stdout}rules: ['MATCH,${name}']\n`);
  return {
    async get(url) {
      const answer = await run("curl", ["-sS", "-m", "20", "-x", `socks5h://127.0.0.1:${mixed}`, url]);
      return answer.stdout;
    },
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}

/** What the command prints is shown where it fails. */
export function restoreInto(home: string, backup: string): void {
  execFileSync(WEIR, ["restore", "-replace", "-d", home, backup]);
}
