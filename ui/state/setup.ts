/** Changes of the configuration file that the page makes of forms: shown first, then put in force. */
import { useEffect, useState } from "preact/hooks";
import type { Link } from "#ui/api/link.ts";
import type { Edit, Preview } from "#ui/api/setup-types.ts";
import { TRIAL_SECONDS } from "./config-editor.ts";
import { useEnvironment } from "./context.ts";
import { RECIPES, type ListenerFields, type Made } from "./recipes.ts";

const CONFIG = "api/svc/config";
const SETUP = "api/svc/setup";
/** Typing has to rest for so long before a port is tried. */
const REST_MS = 300;

export const previewOf = (link: Link, edits: readonly Edit[]): Promise<Preview> =>
  link.call<Preview>("POST", `${CONFIG}/preview`, { edits });

/** `isTrial`: goes back by itself unless it is kept. */
export function applyEdits(
  link: Link,
  edits: readonly Edit[],
  hash: string,
  isTrial: boolean,
): Promise<void> {
  return link.send("PATCH", `${CONFIG}/edits${isTrial ? `?confirm=${TRIAL_SECONDS}` : ""}`, { edits, hash });
}

export const endTrial = (link: Link, how: "confirm" | "cancel"): Promise<void> =>
  link.send("POST", `${CONFIG}/${how}`);

export async function makeKeys(link: Link, kind: string): Promise<Readonly<Record<string, string>>> {
  const { values } = await link.call<{ values: Readonly<Record<string, string>> }>("POST", `${SETUP}/keys`, {
    kind,
  });
  return values;
}

/** Everything that the listener of a form needs and that is not typed. */
export async function makeFor(link: Link, fields: ListenerFields, needsSecret: boolean): Promise<Made> {
  const { security } = RECIPES[fields.recipe];
  const one = async (kind: string): Promise<string> => (await makeKeys(link, kind))["value"] ?? "";
  const names = [fields.serverName.trim()];
  return {
    ...(security === "reality" ? { reality: await makeKeys(link, "reality") } : {}),
    ...(security === "tls" && fields.certificateFrom === "self-signed"
      ? { certificate: await link.call("POST", `${SETUP}/certificate`, { names }) }
      : {}),
    credential: await one(fields.recipe === "shadowsocks" ? "key-16" : "password"),
    ...(needsSecret ? { secret: await one("secret") } : {}),
  };
}

/** Why nothing can listen there; "": it can; null: that is not known yet. */
export function usePortFault(host: string, port: string, network: "tcp" | "udp"): string | null {
  const { link } = useEnvironment();
  const [fault, setFault] = useState<string | null>(null);
  useEffect(() => {
    setFault(null);
    const wanted = Number(port);
    if (!Number.isInteger(wanted) || wanted < 1 || wanted > 65_535) return;
    let isOver = false;
    const timer = setTimeout(() => {
      link.call<{ fault: string | null }>("POST", `${SETUP}/port`, { host, port: wanted, network }).then(
        (answer) => isOver || setFault(answer.fault ?? ""),
        () => {},
      );
    }, REST_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [host, port, network]);
  return fault;
}
