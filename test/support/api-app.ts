/** The Controller's application without a socket, for `inject`. */
import type { FastifyInstance } from "fastify";
import { buildApp } from "#api/app.ts";
import type { AppOptions, Transport } from "#api/app-env.ts";
import { Metrics } from "#api/metrics/index.ts";
import { Subscribers } from "#api/subscriber.ts";
import { SILENT, type Log } from "#core/log.ts";
import { MemoryControl } from "./memory-control.ts";

export const OPEN_OPTIONS: AppOptions = {
  secret: "",
  cors: { allowOrigins: ["*"], allowPrivateNetwork: true },
  hosts: [],
  uiFolder: null,
  dohPath: null,
};

export interface ApiApp {
  readonly app: FastifyInstance;
  readonly control: MemoryControl;
}

export async function apiApp(
  options: Partial<AppOptions> = {},
  { transport = { kind: "http", isLocal: true } as Transport, log = SILENT as Log } = {},
): Promise<ApiApp> {
  const control = new MemoryControl();
  const app = await buildApp({
    options: { ...OPEN_OPTIONS, ...options },
    transport,
    control,
    log,
    upgrades: new WeakMap(),
    subscribers: new Subscribers(),
    metrics: new Metrics(control),
  });
  return { app, control };
}
