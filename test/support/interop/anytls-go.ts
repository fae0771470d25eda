import { type Cell, password } from "./cells.ts";
import type { Launch, Speaker } from "./speaker.ts";

const launch = (...command: readonly string[]): Launch => ({ command, files: {} });

const isOurs = ({ protocol, reality, ech }: Cell): boolean =>
  protocol === "anytls" && reality === null && !ech;

/** Its two programs, named so that a PATH may hold them. */
export const anytlsGo: Speaker = {
  program: "anytls-server",
  version: [],
  server: (cell, port) =>
    isOurs(cell) ? launch("anytls-server", "-l", `127.0.0.1:${port}`, "-p", password) : null,
  client: (cell, socksPort, port) =>
    isOurs(cell)
      ? launch("anytls-client", "-l", `127.0.0.1:${socksPort}`, "-s", `127.0.0.1:${port}`, "-p", password)
      : null,
};
