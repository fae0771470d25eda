/** A WebSocket that reconnects for as long as it has subscribers. */
import type { Link } from "./link.ts";

const REOPEN_MS = 1_000;

/** Calls back with every record while the link is ready; the answer ends it. */
export function openStream<T>(
  link: Link,
  path: string,
  on: (record: T) => void,
  onOpen: () => void = () => {},
): () => void {
  let socket: WebSocket | null = null;
  let timer = 0;

  const open = (): void => {
    if (socket !== null || link.state.value.kind !== "ready") return;
    clearTimeout(timer);
    const opened = new WebSocket(link.socketUrl(path));
    socket = opened;
    opened.onopen = onOpen;
    opened.onmessage = ({ data }) => on(JSON.parse(data as string) as T);
    opened.onclose = () => {
      if (socket !== opened) return;
      socket = null;
      timer = setTimeout(open, REOPEN_MS);
      void link.probe(); // a socket does not say why it closed
    };
  };
  const drop = (): void => {
    const closing = socket;
    socket = null;
    if (closing === null) return;
    closing.onopen = closing.onmessage = closing.onclose = null;
    // closed in mid-handshake it would complain on the console
    if (closing.readyState === WebSocket.CONNECTING) closing.onopen = () => closing.close();
    else closing.close();
  };
  const unwatch = link.state.watch(() => {
    const { kind } = link.state.value;
    if (kind === "ready") open();
    else if (kind === "locked") drop();
  });
  open();
  return () => {
    unwatch();
    clearTimeout(timer);
    drop();
  };
}
