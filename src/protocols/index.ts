/** THE registry of protocols: one line each. */
import type { Protocol } from "#core/protocol.ts";
import { anytls } from "./anytls/index.ts";
import { direct } from "./direct/index.ts";
import { dns } from "./dns/index.ts";
import { http } from "./http/index.ts";
import { hysteria2 } from "./hysteria2/index.ts";
import { mixed } from "./mixed/index.ts";
import { redir } from "./redir/index.ts";
import { reject } from "./reject/index.ts";
import { shadowsocks, ss } from "./shadowsocks/index.ts";
import { socks, socks5 } from "./socks/index.ts";
import { tproxy } from "./tproxy/index.ts";
import { trojan } from "./trojan/index.ts";
import { tuic } from "./tuic/index.ts";
import { tunnel } from "./tunnel/index.ts";
import { vless } from "./vless/index.ts";
import { vmess } from "./vmess/index.ts";
import { wireguard } from "./wireguard/index.ts";

export const PROTOCOLS: readonly Protocol[] = [
  direct,
  reject,
  dns,
  http,
  socks,
  socks5,
  mixed,
  tunnel,
  redir,
  tproxy,
  ss,
  shadowsocks,
  vless,
  anytls,
  vmess,
  trojan,
  hysteria2,
  tuic,
  wireguard,
];
