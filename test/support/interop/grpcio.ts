/** Google's gRPC library as the other end of our gRPC carrier. The program beside this file speaks VLESS through it. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { type Cell, certificate, NAME, SERVICE, uuid } from "./cells.ts";
import type { Launch, Speaker } from "./speaker.ts";

/** Debian's own, whichever else the PATH begins with: its packages are seen by no other. */
const PYTHON = "/usr/bin/python3";
const PROGRAM = join(import.meta.dirname, "grpcio.py");
const METHOD = `/${SERVICE}/Tun`;

const isOurs = ({ protocol, network, mux, udp }: Cell): boolean =>
  protocol === "vless" && network === "grpc" && mux === "none" && udp === "none";

const launch = (...args: readonly string[]): Launch => ({
  command: [PYTHON, PROGRAM, ...args],
  files: { "cert.pem": certificate.cert, "key.pem": certificate.key },
});

export const grpcio: Speaker = {
  program: PYTHON,
  version: ["-c", "import grpc; print('grpcio', grpc.__version__)"],
  absent() {
    const found = spawnSync(PYTHON, ["-c", "import grpc"]).status === 0;
    return found ? false : "SKIP grpcio: the package python3-grpcio is not installed";
  },
  server: (cell, port) =>
    isOurs(cell) ? launch("server", `${port}`, METHOD, uuid, "{}/cert.pem", "{}/key.pem") : null,
  client: (cell, socksPort, port) =>
    isOurs(cell) ? launch("client", `${socksPort}`, METHOD, uuid, "{}/cert.pem", NAME, `${port}`) : null,
};
