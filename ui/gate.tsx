/** What stands instead of the pages while they cannot be shown, and above them while nobody answers. */
import { useEffect, useRef, useState } from "preact/hooks";
import type { LinkState } from "./api/link.ts";
import { Button } from "./parts/small.tsx";
import { useEnvironment } from "./state/context.ts";

export function Gate({ state }: { readonly state: LinkState }) {
  if (state.kind === "locked") return <AskSecret refused={state.refused} />;
  if (state.kind === "connecting") return <p class="gate-wait">Connecting …</p>;
  if (state.kind === "forbidden")
    return (
      <div class="gate">
        <h1>Not served under this name</h1>
        <p>
          The Controller has no secret and therefore answers only under addresses and names that it knows.
          Open this page by its address, or set a <code>secret</code> in the configuration.
        </p>
      </div>
    );
  return (
    <div class="gate" role="alert">
      <h1>Controller unreachable</h1>
      <p>Nobody answers at {location.host}. It is tried again every two seconds.</p>
    </div>
  );
}

export function UnreachableBanner() {
  return (
    <p class="banner" role="alert">
      Controller unreachable. What you see may be old; it is tried again every two seconds.
    </p>
  );
}

function AskSecret({ refused }: { readonly refused: boolean }) {
  const { link } = useEnvironment();
  const [secret, setSecret] = useState("");
  const [busy, setBusy] = useState(false);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => field.current?.focus(), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    await link.unlock(secret);
    setBusy(false);
  };
  return (
    <form class="gate" onSubmit={(event) => void submit(event)}>
      <h1>Secret</h1>
      <p>
        The Controller asks for its secret: the value of <code>secret</code> in the configuration, or the one
        printed at the start.
      </p>
      <label class="field">
        <span>Secret</span>
        <input
          ref={field}
          type="password"
          value={secret}
          autocomplete="off"
          required
          aria-invalid={refused}
          aria-describedby="secret-error"
          onInput={(event) => setSecret(event.currentTarget.value)}
        />
      </label>
      <p id="secret-error" class="error" role="alert">
        {refused ? "That is not the secret." : ""}
      </p>
      <Button label="Open" kind="main" busy={busy} />
    </form>
  );
}
