{# What differs from run to run: a script that sets one variable, so that the page can be read from a file as well. #}
{% set unknown = "by no finished run in this folder: it came with the code or from a run cut short, or was saved or edited by hand" %}
{% set never = "These figures came with the code: none of the notebooks has been run in this folder. make figures runs them." %}
{% set runs = chapters | selectattr("manifest") | list %}
{% set bad = runs | rejectattr("manifest.state", "equalto", "finished") | map(attribute="name") | sort | join(", ") %}
window.provenance = {
{% set unfinished = " Not finished: " ~ bad ~ "; what stands there is from earlier, or in part." if bad else "" %}
{% set here = runs | length ~ " of " ~ chapters | length ~ " notebooks were run here; “how it was made” has machine, versions and commit of each figure." ~ unfinished %}
"here": {{ (here if runs else never) | tojson }},
"notebooks": {
{% for chapter in runs %}
{% set run = chapter.manifest %}
{% set took = "%.0f s, %s" % (run.seconds, run.made.date) %}
{% set said = {"finished": run.profile ~ ", " ~ took, "failed": "failed after " ~ took, "running": "interrupted, or still running; begun " ~ run.made.date}[run.state] %}
{{ chapter.name | tojson }}: {{ {"said": said, "good": run.state == "finished", "error": run.error} | tojson }}{{ "" if loop.last else "," }}
{% endfor %}
},
"figures": {
{% for chapter in runs %}
{% set run = chapter.manifest %}
{% for card in chapter.cards %}
{% set made = [["profile", run.profile], ["made", run.made.date], ["commit", run.made.commit], ["machine", run.made.machine], ["versions", run.made.versions]] %}
{{ card.name | tojson }}: {{ (made if card.made else [["made", unknown]]) | tojson }},
{% endfor %}
{% endfor %}
}};
