/** What an application of the Controller is made with. */
import type { AccessControl } from "#core/access.ts";
import type { Control } from "#core/control.ts";
import type { FleetAdmin } from "#core/fleet.ts";
import type { Log } from "#core/log.ts";
import type { CorsOptions } from "./cors.ts";
import type { Metrics } from "./metrics/index.ts";
import type { Route } from "./route.ts";
import type { Subscribers } from "./subscriber.ts";
import type { Upgrades } from "./upgrade.ts";

/** Which way a request came in. */
export interface Transport {
  readonly kind: "http" | "https" | "unix" | "pipe";
  /** Only programs on this machine reach it. */
  readonly isLocal: boolean;
}

/** Others on the way read along: a secret of users has no place there. */
export function isInClear({ kind, isLocal }: Transport): boolean {
  return kind === "http" && !isLocal;
}

export interface AppOptions {
  /** "" leaves the Controller open; see `openController`. */
  readonly secret: string;
  readonly cors: CorsOptions;
  /** Hosts that are ours besides addresses and loopback names; counts only where the secret is empty. */
  readonly hosts: readonly string[];
  /** Absolute path of the static dashboard. */
  readonly uiFolder: string | null;
  /** That folder holds the built-in one: it is served with a strict policy. */
  readonly uiIsOurs?: boolean;
  /** Path of the DNS-over-HTTPS endpoint; null: none. */
  readonly dohPath: string | null;
  /** Tokens and the audit log; absent: there are none. */
  readonly access?: AccessControl;
  /** Secret of the `svc` block; null, or absent: there is none. */
  readonly svcSecret?: () => string | null;
  /** Null, or absent: the program is no node of a fleet. */
  readonly fleet?: () => FleetAdmin | null;
  /** The present path of what another program had at `path`, which has no query; null: nothing. Absent: never. */
  readonly former?: (path: string) => string | null;
  /** Routes of other parts of the program, for each transport anew. */
  readonly mounts?: (
    transport: Transport,
    subscribers: Subscribers,
  ) => readonly Route[] | Promise<readonly Route[]>;
}

export interface AppEnv {
  readonly options: AppOptions;
  readonly transport: Transport;
  readonly control: Control;
  readonly log: Log;
  readonly upgrades: Upgrades;
  readonly subscribers: Subscribers;
  /** Shared by all transports. */
  readonly metrics: Metrics;
}
