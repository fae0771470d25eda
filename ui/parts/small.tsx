/** Small parts that every page uses. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef } from "preact/hooks";
import { Icon } from "./icons.tsx";

/** The heading takes the focus when its page opens, so that keyboard and screen readers continue there. */
export function Page({
  title,
  tools,
  fill = false,
  children,
}: {
  readonly title: string;
  readonly tools?: ComponentChildren;
  /** The page is as high as the window and scrolls inside. */
  readonly fill?: boolean;
  readonly children: ComponentChildren;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => {
    document.title = `${title} · weir`;
    heading.current?.focus({ preventScroll: true });
  }, [title]);
  return (
    <div class={fill ? "page page-fill" : "page"}>
      <header class="page-head">
        <h1 ref={heading} tabIndex={-1}>
          {title}
        </h1>
        {tools !== undefined && <div class="tools">{tools}</div>}
      </header>
      {children}
    </div>
  );
}

export function Panel({
  title,
  tools,
  children,
}: {
  readonly title: string;
  readonly tools?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  const id = useId();
  return (
    <section class="panel" aria-labelledby={id}>
      <div class="panel-head">
        <h2 id={id}>{title}</h2>
        {tools}
      </div>
      {children}
    </section>
  );
}

/** While it is busy it does nothing, and keeps the focus: a disabled one would lose it. */
export function Button({
  label,
  name,
  onPress,
  kind = "plain",
  busy = false,
  disabled = false,
}: {
  readonly label: string;
  /** Where several buttons have one label: what screen readers say instead. */
  readonly name?: string;
  readonly onPress?: () => unknown;
  readonly kind?: "plain" | "main" | "danger";
  readonly busy?: boolean;
  readonly disabled?: boolean;
}) {
  const press = (event: Event): void => {
    if (busy) event.preventDefault();
    else void onPress?.();
  };
  return (
    <button
      type={onPress === undefined ? "submit" : "button"}
      class={`button ${kind}`}
      aria-label={name}
      aria-busy={busy}
      aria-disabled={busy}
      disabled={disabled}
      onClick={press}
    >
      {label}
    </button>
  );
}

export function CloseButton({ label, onPress }: { readonly label: string; readonly onPress: () => unknown }) {
  return (
    <button type="button" class="icon-button" aria-label={label} title={label} onClick={() => void onPress()}>
      <Icon name="close" />
    </button>
  );
}

/** Where there is nothing to show: why, and what would change that. */
export function Empty({
  title,
  children,
}: {
  readonly title: string;
  readonly children?: ComponentChildren;
}) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children !== undefined && <p>{children}</p>}
    </div>
  );
}

/** What went wrong, announced at once; empty where nothing did. */
export function Fault({ text }: { readonly text: string | null }) {
  if (text === null || text === "") return null;
  return (
    <p class="error" role="alert">
      {text}
    </p>
  );
}

export function Tag({
  children,
  kind = "",
}: {
  readonly children: ComponentChildren;
  readonly kind?: string;
}) {
  return <span class={`tag ${kind}`}>{children}</span>;
}

/** A way of names, such as a group to its node. */
export function Chain({ names }: { readonly names: readonly string[] }) {
  return (
    <span class="chain">
      {names.map((name, at) => (
        <span key={at}>
          {at > 0 && <span class="arrow"> → </span>}
          {name}
        </span>
      ))}
    </span>
  );
}
