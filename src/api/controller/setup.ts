/** What a new listener or node of the configuration file is made of. Nothing here changes anything. */
import * as z from "zod";
import { KEY_KINDS, type SetupControl } from "#core/control-setup.ts";
import { route, type Answer, type Route } from "#api/route.ts";
import { jsonObject, queryOf } from "#api/shapes.ts";
import {
  certificateAnswer,
  keysAnswer,
  linksAnswer,
  nodesAnswer,
  portAnswer,
  setupAnswer,
  targetsAnswer,
} from "./setup-shapes.ts";

const ok = (description: string, schema: z.ZodType): Answer => ({ status: 200, description, schema });
const name = z.string().trim().min(1).max(253);
/** As they stand in a certificate: names beyond ASCII are written in punycode. */
const certified = name.regex(/^[\x21-\x7e]+$/, "expected a host name or an IP address");
/** A visit takes seconds, and four go on at once. */
const MOST_TARGETS = 20;
const MOST_NAMES = 20;

export function setupRoutes(setup: SetupControl): readonly Route[] {
  return [
    route({
      method: "GET",
      scope: "read",
      path: "/api/svc/setup",
      summary: "Listeners, nodes and groups that are in force, without what is secret",
      answer: ok("What the file lists", setupAnswer),
      handle() {
        const { svc, hasAcme, protocols, listeners, nodes, groups } = setup.view();
        return {
          listeners: listeners.map(({ isListed, isManaged, ...one }) => ({
            ...one,
            listed: isListed,
            managed: isManaged,
          })),
          nodes,
          groups,
          svc: svc && { public_base_url: svc.publicBaseUrl, managed: svc.managed },
          acme: hasAcme,
          managed_types: protocols.map(({ type }) => type),
        };
      },
    }),
    ...makingRoutes(setup),
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/setup/port",
      onlyReads: true,
      summary: "Whether something could listen at an address of this machine",
      body: jsonObject({
        host: z.union([z.ipv4(), z.ipv6()]),
        port: z.int().min(1).max(65_535),
        network: z.enum(["tcp", "udp"]),
      }),
      answer: ok("Why not, or null", portAnswer),
      handle: async ({ body }) => ({ fault: await setup.portFault(body) }),
    }),
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/setup/targets",
      onlyReads: true,
      summary: "Visit sites as a browser would, and rank them by how well they would do as dest of REALITY",
      body: jsonObject({ sites: z.array(name).min(1).max(MOST_TARGETS) }),
      answer: ok("The best one first", targetsAnswer),
      async handle({ body, signal }) {
        const targets = await setup.targets(body.sites, signal);
        return {
          targets: targets.map(({ serverName, roundTripMs, ...one }) => ({
            ...one,
            server_name: serverName,
            round_trip_ms: roundTripMs,
          })),
        };
      },
    }),
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/setup/nodes",
      onlyReads: true,
      summary: "Share links, or a subscription's body, as items for `proxies`",
      body: jsonObject({ text: z.string().min(1) }),
      answer: ok("With names that no node or group has yet", nodesAnswer),
      handle: ({ body }) => setup.nodesOf(body.text),
    }),
    route({
      method: "GET",
      scope: "owner", // credentials are in them
      path: "/api/svc/setup/links",
      summary: "Share links of a listener whose users stand in the file",
      query: queryOf({ listener: name, host: name }),
      answer: ok("One a user", linksAnswer),
      handle: async ({ query }) => ({ links: await setup.links(query.listener, query.host) }),
    }),
  ];
}

function makingRoutes(setup: SetupControl): readonly Route[] {
  return [
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/setup/keys",
      onlyReads: true,
      summary: "Fresh key material; it is kept nowhere",
      body: jsonObject({ kind: z.enum(KEY_KINDS) }),
      answer: ok("By the keys that they are for", keysAnswer),
      handle: ({ body }) => ({ values: setup.keys(body.kind) }),
    }),
    route({
      method: "POST",
      scope: "admin",
      path: "/api/svc/setup/certificate",
      onlyReads: true,
      summary: "A certificate signed by itself, for tests; it is kept nowhere",
      body: jsonObject({ names: z.array(certified).min(1).max(MOST_NAMES) }),
      answer: ok("PEM, and the key to it", certificateAnswer),
      handle({ body }) {
        const { certificate, privateKey } = setup.certificate(body.names);
        return { certificate, private_key: privateKey };
      },
    }),
  ];
}
