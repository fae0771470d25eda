import { password } from "./cells.ts";
import type { Launch, Speaker } from "./speaker.ts";

const launch = (...command: readonly string[]): Launch => ({ command, files: {} });

/** Its two programs, named so that a PATH may hold them. */
export const anytlsGo: Speaker = {
  program: "anytls-server",
  version: [],
  server: ({ protocol }, port) =>
    protocol === "anytls" ? launch("anytls-server", "-l", `127.0.0.1:${port}`, "-p", password) : null,
  client: ({ protocol }, socksPort, port) =>
    protocol === "anytls"
      ? launch("anytls-client", "-l", `127.0.0.1:${socksPort}`, "-s", `127.0.0.1:${port}`, "-p", password)
      : null,
};
