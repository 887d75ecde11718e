# Prints what a page of rustdoc declares: the item, its methods, constants and implementations, without docs. Set ITEM to
# the item's path. Of automatic implementations only those that users rely on are printed, and no blanket ones: the compiler's
# version decides which others there are.

BEGIN { RS = "\001" }

function plain(html) {
    gsub(/<summary class="hideme">(<span>)?[^<]*(<\/span>)?<\/summary>/, "", html)
    gsub(/<div class="where">/, " ", html)
    gsub(/<div class="code-attribute">[^<]*<\/div>/, "&\n", html)
    gsub(/<[^>]*>/, "", html)
    gsub(/&nbsp;|&#160;/, " ", html)
    gsub(/&lt;|&#60;/, "<", html)
    gsub(/&gt;|&#62;/, ">", html)
    gsub(/&quot;|&#34;/, "\"", html)
    gsub(/&#39;|&#x27;/, "'", html)
    gsub(/&amp;|&#38;/, "\\&", html)
    gsub(/ ⓘ/, "", html)
    return html
}

function until(html, tag) { return substr(html, 1, index(html, tag) - 1) }

{
    page = $0
    count = split(page, part, /<(pre class="rust item-decl"|h[34] class="code-header")>/)
    if (count == 1) {
        # A module: its re-exports.
        count = split(page, part, /<code>pub use /)
        for (at = 2; at <= count; at++) print ITEM ": pub use " plain(until(part[at], "</code>"))
        exit
    }
    declaration = plain(until(part[2], "</pre>"))
    gsub(/\n[ \n]*\n/, "\n", declaration)
    print "\n" ITEM ":\n" declaration
    is_trait = page ~ /<h1>Trait /
    if (page ~ /<h1>Type Alias /) exit
    for (at = 3; at <= count; at++) {
        before = part[at - 1]
        # The headings of the page.
        if (before ~ /id="(trait-implementations|foreign-impls|implementors)"/) region = ""
        if (before ~ /id="synthetic-implementations"/) region = "automatic"
        if (before ~ /id="blanket-implementations"/) exit
        if (before ~ /id="foreign-impls"/) region = "foreign"
        sections = split(before, section, /<section /)
        tag = until(section[sections], ">")
        is_impl = tag ~ /^id="impl-/
        if (tag ~ /class="[^"]*trait-impl|class="variant"/) continue
        # What `derive(PartialEq)` adds.
        if (tag ~ /^id="impl-StructuralPartialEq-/) continue
        if (is_trait && !(is_impl && region == "foreign")) continue
        if (region == "automatic" && tag !~ /^id="impl-(Send|Sync|Unpin|UnwindSafe|RefUnwindSafe)-/) continue
        header = plain(until(part[at], part[at] ~ /^([^<]|<[^\/h]|<\/[^h])*<\/h3>/ ? "</h3>" : "</h4>"))
        gsub(/[ \n]+/, " ", header)
        gsub(/\( /, "(", header)
        gsub(/, \)/, ")", header)
        print (is_impl ? "" : "    ") header
    }
}
