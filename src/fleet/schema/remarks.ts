/** The sixth version of the fleet's schema: what operators write down about users. */
export const REMARKS = `
ALTER TABLE weir.app_user ADD COLUMN remarks jsonb NOT NULL DEFAULT '{}';

-- A row as it is stored, from JSON with the columns' names; bytea as base64.
CREATE OR REPLACE FUNCTION weir.put_user(tag text, record jsonb) RETURNS void
LANGUAGE plpgsql SECURITY DEFINER SET search_path = weir, pg_temp AS $$
BEGIN
  INSERT INTO weir.app_user AS u VALUES (
    (record->>'id')::uuid, tag, record->>'name', record->>'credential', record->>'flow',
    (record->>'enabled')::boolean, record->'limits', (record->>'generation')::integer,
    decode(record->>'token_hash', 'base64'), decode(record->>'token_sealed', 'base64'),
    (record->>'created_at')::bigint, (record->>'updated_at')::bigint, coalesce(record->'remarks', '{}'))
  ON CONFLICT (id) DO UPDATE SET
    name = excluded.name, credential = excluded.credential, flow = excluded.flow, enabled = excluded.enabled,
    limits = excluded.limits, generation = excluded.generation, token_hash = excluded.token_hash,
    token_sealed = excluded.token_sealed, updated_at = excluded.updated_at, remarks = excluded.remarks
  WHERE u.listener = tag;
  IF NOT FOUND THEN RAISE EXCEPTION 'the id of a user of another listener' USING ERRCODE = '23505'; END IF;
END $$;
`;
