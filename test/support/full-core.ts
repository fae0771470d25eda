/** The real program with a little of everything that the Controller shows. */
import { freePorts } from "./free-ports.ts";
import { startCore, type Core } from "./start-core.ts";

export const FULL_SECRET = "controller secret of the full core";
export const FULL_ADMIN_SECRET = "admin secret of the full core, 32 bytes";
export const FULL_UUID = "6d27a52f-4539-4ac1-9bd4-b8e05e53c197";
export const FULL_PASSWORD = "a password that must stay hidden";
/** Everything in the configuration that no document may show. */
export const SECRETS = [FULL_SECRET, FULL_ADMIN_SECRET, FULL_UUID, FULL_PASSWORD, "BEGIN "];

const config = (mixed: number, controller: number, origin: number): string => `
mixed-port: ${mixed}
external-controller: 127.0.0.1:${controller}
secret: ${FULL_SECRET}
authentication: ["anna:${FULL_PASSWORD}"]
skip-auth-prefixes: [127.0.0.0/8]
hosts: { "+.test": 127.0.0.1 }
dns: { enable: true, nameserver: [127.0.0.1:1] }
tun: { enable: false, device: weir0, route-address: [192.0.2.0/24] }
proxies:
  - { name: Node 1, type: socks5, server: 127.0.0.1, port: 1, username: u, password: "${FULL_PASSWORD}" }
  - { name: a/b 50% x#y 🇩🇪, type: direct }
  - { name: closed, type: http, server: 127.0.0.1, port: 1 }
  - { name: silent, type: socks5, server: 127.0.0.1, port: ${origin} }
proxy-providers:
  remote/1: { type: inline, payload: [{ name: inner, type: direct }] }
proxy-groups:
  - { name: Proxy, type: select, proxies: [DIRECT, Node 1, Auto, a/b 50% x#y 🇩🇪], use: [remote/1] }
  - { name: Auto, type: url-test, interval: 0, proxies: [DIRECT, Node 1], url: 'http://127.0.0.1:${controller}/ui/' }
  - { name: Back, type: fallback, interval: 0, proxies: [Node 1, DIRECT], url: 'http://127.0.0.1:${controller}/ui/' }
  - { name: Spread, type: load-balance, interval: 0, proxies: [DIRECT, a/b 50% x#y 🇩🇪], url: 'http://127.0.0.1:${controller}/ui/' }
rule-providers:
  ads: { type: inline, behavior: domain, payload: [ads.test] }
rules:
  - RULE-SET,ads,REJECT
  - DOMAIN-SUFFIX,test,Proxy
  - AND,((NETWORK,udp),(DST-PORT,443)),REJECT
  - MATCH,DIRECT
listeners:
  - { name: edge, type: vless, listen: 127.0.0.1, port: 0, allow-insecure: true, users: [{ username: seeded, uuid: ${FULL_UUID} }] }
svc:
  secret: ${FULL_ADMIN_SECRET}
  public-base-url: https://proxy.example.com
  managed-listeners: [edge]
traffic-control:
  enabled: true
  global: { download-bps: 1000000000, quota: { total-bytes: 1000000000000, window: 30d, overage-download-bps: 256000 } }
  devices:
    - { id: phone, name: Phone, mac: "aa:bb:cc:dd:ee:ff", source-cidrs: [127.0.0.0/8] }
  rules:
    - { id: tests, type: DOMAIN-SUFFIX, payload: test, target: Proxy, upload-bps: 80000000 }
  targets:
    - { id: group, kind: group, target: Proxy }
    - { id: node, kind: proxy, target: DIRECT, enabled: false }
`;

export interface FullCore extends AsyncDisposable {
  readonly core: Core;
  readonly mixed: number;
  readonly controller: number;
  readonly base: string;
}

/** `originPort`: something that accepts and says nothing by itself. */
export async function startFullCore(originPort: number): Promise<FullCore> {
  const [mixed, controller] = (await freePorts(2)) as [number, number];
  const core = await startCore(config(mixed, controller, originPort));
  return {
    core,
    mixed,
    controller,
    base: `http://127.0.0.1:${controller}`,
    [Symbol.asyncDispose]: () => core[Symbol.asyncDispose](),
  };
}
