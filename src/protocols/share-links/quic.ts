/** Links over QUIC (share-link sheet §3): nodes that this build cannot dial, but reads and writes whole. */
import type { LinkForm } from "#core/share-link.ts";
import { isTrue, joinLink } from "#protocols/shared/links/grammar.ts";
import { common, needUser, server } from "#protocols/shared/links/node.ts";
import { textOf } from "#protocols/shared/links/stream.ts";

export interface ForeignForm extends LinkForm {
  /** `type` of the nodes. */
  readonly type: string;
}

export const tuic: ForeignForm = {
  schemes: ["tuic"],
  type: "tuic",
  read(link) {
    const [first = "", ...password] = needUser(link).split(":");
    const { query } = link;
    return {
      ...server(link, "tuic", 443),
      ...(password.length === 0 ? { token: first } : { uuid: first, password: password.join(":") }),
      ...(query.has("sni") ? { sni: query.get("sni") } : {}),
      ...(query.has("alpn") ? { alpn: query.get("alpn")?.split(",") } : {}),
      ...(query.has("congestion_control")
        ? { "congestion-controller": query.get("congestion_control") }
        : {}),
      ...(query.has("udp_relay_mode") ? { "udp-relay-mode": query.get("udp_relay_mode") } : {}),
      ...(isTrue(query.get("allow_insecure")) ? { "skip-cert-verify": true } : {}),
    };
  },
  write: (node) =>
    joinLink({
      scheme: "tuic",
      user: `${textOf(node["uuid"]) ?? ""}:${encodeURIComponent(textOf(node["password"]) ?? "")}`,
      ...common(node),
      query: {
        congestion_control: textOf(node["congestion-controller"]),
        udp_relay_mode: textOf(node["udp-relay-mode"]),
        alpn: Array.isArray(node["alpn"]) ? node["alpn"].join(",") : undefined,
        sni: textOf(node["sni"]),
      },
    }),
};
