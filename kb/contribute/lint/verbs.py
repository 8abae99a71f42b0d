"""Words with which a step begins."""

from __future__ import annotations

VERBS = frozenset(
    """
    accept acquire activate add adjust adopt advance agree align allocate allow alter answer
    append apply approve ask assemble assert assign assume attach attempt audit avoid bake
    balance ban bench bind bisect block boot bound bring broadcast build bump bypass cache
    calculate call cancel cap capture cast catch change check choose clamp clean clear click
    clip clone close collate collect combine come commit compare compile complete compress
    compute configure confirm connect consider consult contact continue convert cool copy
    correct count crash create cut cycle deactivate debug decide declare decode decompress
    decrease define delay delete deny deploy derive describe destroy detach detect determine
    diagnose diff disable discard disconnect divide do double downgrade download drain draw
    drop dump edit eject empty enable encode end enforce enlarge ensure enter erase establish
    estimate evaluate evict examine exchange exclude execute exempt exit expand expect export
    expose extend extract fall feed fetch fight file fill filter find finish fit fix flash flip
    flush follow forbid force format forward free freeze gather generate get give go grant
    group grow guard hand handle hash have hide hold hunt identify ignore import improve
    include increase infer inform inherit initialise initialize insert inspect install
    interpret invalidate invoke isolate issue join keep kill label launch learn leave lengthen
    let lift limit link list listen load locate lock log look lower make map mark mask match
    measure mend merge migrate mind mirror mix modify monitor mount move mute name normalise
    normalize note notify obtain offload omit open opt order override own pack pad parse
    partition pass patch pause permit pick pin ping place plan plug point poll populate power
    precompute prefer preload prepare present preserve prevent print probe profile promote
    protect prove provide provision prune pull purge push put query quit quote raise re-run
    reach read reapply reboot rebuild recalculate recompile recompute reconnect record recover
    recreate redeploy redirect reduce refer refresh register reinstall reject relax release
    reload remap remember remount remove rename render reopen repair repeat replace replay
    report reproduce request rerun reschedule reseat reserve reset reshard resize resolve
    restart restore restrict resubmit resume retain retrain retry return reuse revert review
    rewrite roll rotate round route rule run sample save say scale scan schedule scrape search
    seat see seed select send separate serialise serialize serve set shard share shift ship
    shorten show shrink shuffle shut shutdown sign silence simplify skip slice sort specify
    split spread stagger standardise start stay step stop store stream stress strip submit
    subscribe substitute sum supply suppress suspend swap switch sync synchronise synchronize
    tag take tell terminate test throttle tie tighten time toggle tokenise tokenize touch trace
    track train transfer translate treat trigger trim truncate trust try tune turn type unblock
    uncomment undo unfreeze uninstall unload unlock unmount unpack unpin unset unwrap update
    upgrade upload use vacuum validate verify view wait wake walk warm warn watch whitelist
    widen wipe wire wrap write zero
    """.split()
)
"""Verbs in the form in which one tells somebody to do something."""

CONDITIONS = frozenset(
    """
    after again also alternatively always as at before better by do during each either else
    every finally first for from if in inside instead into later meanwhile never next not on
    once only or otherwise outside over rather second should since then third though to under
    unless until when whenever where wherever which while with within without
    """.split()
)
"""Words that may precede the verb: conditions of time, place or person."""
