/** The program with providers and databases, seen through the Controller, and the site that they come from. */
import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { startCore, type Core } from "./start-core.ts";
import { openWebOrigin, type WebOrigin } from "./web-origin.ts";

export interface Site extends WebOrigin {
  /** Body and headers by path; absent: 404. */
  readonly pages: Map<string, { body: string | Uint8Array; headers?: Record<string, string> }>;
  /** Path and user agent of every request. */
  readonly asked: string[];
}

/** What it serves may change while it runs. */
export async function openSite(): Promise<Site> {
  const pages: Site["pages"] = new Map();
  const asked: string[] = [];
  const web = await openWebOrigin((request, response) => {
    asked.push(`${request.url} ${request.headers["user-agent"]}`);
    const page = pages.get(request.url ?? "");
    if (page === undefined) return void response.writeHead(404).end();
    response.writeHead(200, page.headers).end(page.body);
  });
  return { ...web, pages, asked };
}

export const HEAD = "mixed-port: 0\nexternal-controller: 127.0.0.1:0\nsecret: s\nipv6: false\n";

/** Starts with files in its home directory already. */
export function startWith(
  config: string,
  files: Readonly<Record<string, string | Uint8Array>> = {},
): Promise<Core> {
  const seed = (home: string): void => {
    for (const [name, body] of Object.entries(files)) {
      mkdirSync(dirname(join(home, name)), { recursive: true });
      writeFileSync(join(home, name), body);
    }
  };
  return startCore(HEAD + config, { seed });
}

export async function api(core: Core, path: string, init: RequestInit = {}): Promise<Response> {
  const url = `http://127.0.0.1:${await core.controllerPort()}${path}`;
  return fetch(url, { ...init, headers: { Authorization: "Bearer s" } });
}

export async function get<T>(core: Core, path: string): Promise<T> {
  const answer = await api(core, path);
  assert.equal(answer.status, 200, path);
  return (await answer.json()) as T;
}

export async function chainOf(core: Core, destination: string): Promise<string> {
  const { chain } = await get<{ chain: string[] }>(core, `/rules/explain?destination=${destination}`);
  return chain.join(">");
}

export const groupOf = (core: Core, name: string) =>
  get<{ all: string[]; hidden: boolean; icon: string }>(core, `/proxies/${name}`);
