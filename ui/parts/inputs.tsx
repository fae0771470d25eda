/** What a person types into, switches and chooses from. */

export function Switch({
  label,
  on,
  onChange,
  hideLabel = false,
}: {
  readonly label: string;
  readonly on: boolean;
  readonly onChange: (on: boolean) => unknown;
  readonly hideLabel?: boolean;
}) {
  return (
    <button
      type="button"
      role="switch"
      class="switch"
      aria-checked={on}
      aria-label={hideLabel ? label : undefined}
      onClick={() => void onChange(!on)}
    >
      {!hideLabel && <span>{label}</span>}
      <span class="track" aria-hidden="true" />
    </button>
  );
}

interface ChoiceProps<T extends string> {
  readonly label: string;
  readonly value: T;
  readonly options: readonly (readonly [value: T, text: string])[];
  readonly onChange: (value: T) => unknown;
}

export function Select<T extends string>({ label, value, options, onChange }: ChoiceProps<T>) {
  return (
    <label class="field">
      <span>{label}</span>
      <select value={value} onChange={(event) => void onChange(event.currentTarget.value as T)}>
        {options.map(([option, text]) => (
          <option key={option} value={option}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

interface SegmentsProps<T extends string> extends Omit<ChoiceProps<T>, "options"> {
  readonly options: readonly (readonly [value: T, text: string, hint?: string])[];
}

/** A few choices side by side. */
export function Segments<T extends string>({ label, value, options, onChange }: SegmentsProps<T>) {
  return (
    <div class="segments" role="group" aria-label={label}>
      {options.map(([option, text, hint]) => (
        <button
          key={option}
          type="button"
          aria-pressed={option === value}
          title={hint}
          onClick={() => void onChange(option)}
        >
          {text}
        </button>
      ))}
    </div>
  );
}

export function Input({
  label,
  value,
  onInput,
  type = "text",
  placeholder,
  required = false,
}: {
  readonly label: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "search" | "number" | "datetime-local";
  readonly placeholder?: string;
  readonly required?: boolean;
}) {
  return (
    <label class="field">
      <span>{label}</span>
      <input
        type={type as "text"} // the typings want to know which of them it is
        value={value}
        placeholder={placeholder}
        required={required}
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        onInput={(event) => onInput(event.currentTarget.value)}
      />
    </label>
  );
}
