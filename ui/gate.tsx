/** What stands instead of the pages while they cannot be shown, and above them while the Controller does not answer. */
import type { LinkState } from "./api/link.ts";
import { SecretForm } from "./parts/secret-form.tsx";
import { useEnvironment } from "./state/context.ts";

export function Gate({ state }: { readonly state: Exclude<LinkState, { kind: "ready" }> }) {
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
      <p>
        At {location.host}: {state.why}. It is tried again every two seconds.
      </p>
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
  return (
    <SecretForm title="Secret" label="Secret" refused={refused} onSecret={(secret) => link.unlock(secret)}>
      <p>
        The Controller asks for its secret: the value of <code>secret</code> in the configuration, or the one
        printed at the start.
      </p>
    </SecretForm>
  );
}
