/** THE list of protocols whose first bytes name a host: one line each. */
import { http } from "./http.ts";
import type { SniffProtocol } from "./probe.ts";
import { quic } from "./quic.ts";
import { tls } from "./tls.ts";

export const SNIFF_PROTOCOLS: readonly SniffProtocol[] = [http, tls, quic];
